import { Stack, type StackProps } from "@mantine/core";

/** Show a list without bullets. */
export function PlainList(props: StackProps) {
  return <Stack component="ul" gap="xs" m={0} p={0} style={{ listStyle: "none" }} {...props} />;
}
