/** Where a page would be that could not be drawn, or the whole app. */

import { Button, Center, Stack, Text } from "@mantine/core";
import { t } from "../../locale/t.ts";

export function ErrorFallback({ what = t("app.pageFailed") }: { what?: string }) {
  return (
    <Center p="xl">
      <Stack align="center">
        <Text role="alert">{what}</Text>
        <Button onClick={() => location.reload()}>{t("app.reload")}</Button>
      </Stack>
    </Center>
  );
}
