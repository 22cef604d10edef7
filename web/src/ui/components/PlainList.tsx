/** A list without dots: its parts stand one below the other. */

import { Stack, type StackProps } from "@mantine/core";

export function PlainList(props: StackProps) {
  return <Stack component="ul" gap="xs" m={0} p={0} style={{ listStyle: "none" }} {...props} />;
}
