/** The first visit, wherever it begins: what one can do here, and something to try it with. */

import { Button, List, Stack, Text } from "@mantine/core";
import { documents as words } from "../words/documents.ts";
import { sample } from "../words/sample.ts";

export default function GettingStarted({ add }: { add: (files: File[]) => void }) {
  const { empty } = words;
  const addSample = () => add([new File([sample.text], sample.filename, { type: "text/markdown" })]);
  return (
    <Stack maw="var(--reading-width)" gap="lg" py="md">
      <List type="ordered" spacing="md" withPadding>
        {empty.tries.map(({ title, text }) => (
          <List.Item key={title}>
            <Text fw={600}>{title}</Text>
            <Text c="dimmed">{text}</Text>
          </List.Item>
        ))}
      </List>
      <Stack gap={4} align="start">
        <Button size="md" variant="light" onClick={addSample}>
          {empty.sample}
        </Button>
        <Text size="sm" c="dimmed">
          {empty.sampleHint}
        </Text>
      </Stack>
      <Text size="sm" c="dimmed">
        {empty.kept}
      </Text>
    </Stack>
  );
}
