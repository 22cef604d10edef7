import { Button, Center, Stack, Text } from "@mantine/core";
import { t } from "../../locale/t.ts";

/** Show an error message in place of a page that failed to render, or in place of the whole app. */
export function ErrorFallback({ message = t("app.pageFailed") }: { message?: string }) {
  return (
    <Center p="xl">
      <Stack align="center">
        <Text role="alert">{message}</Text>
        <Button onClick={() => location.reload()}>{t("app.reload")}</Button>
      </Stack>
    </Center>
  );
}
