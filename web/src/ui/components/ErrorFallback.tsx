/** Where a page would be that could not be drawn, or the whole app. */

import { Button, Center, Stack, Text } from "@mantine/core";
import { words } from "../words.ts";

export function ErrorFallback({ what = words.places.undrawn }: { what?: string }) {
  return (
    <Center p="xl">
      <Stack align="center">
        <Text role="alert">{what}</Text>
        <Button onClick={() => location.reload()}>{words.places.reload}</Button>
      </Stack>
    </Center>
  );
}
