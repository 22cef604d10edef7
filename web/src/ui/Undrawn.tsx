/** Where a page would be that could not be drawn. */

import { Button, Center, Stack, Text } from "@mantine/core";
import { words } from "./words.ts";

export function Undrawn() {
  return (
    <Center p="xl">
      <Stack align="center">
        <Text role="alert">{words.places.undrawn}</Text>
        <Button onClick={() => location.reload()}>{words.places.reload}</Button>
      </Stack>
    </Center>
  );
}
