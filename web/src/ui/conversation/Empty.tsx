/** Before the first question. */

import { Stack, Text, Title } from "@mantine/core";
import { words } from "../words.ts";

export function Empty() {
  return (
    <Stack pt="20dvh" gap="xs">
      <Title order={2}>{words.conversation.emptyTitle}</Title>
      <Text c="dimmed">{words.conversation.empty}</Text>
    </Stack>
  );
}
