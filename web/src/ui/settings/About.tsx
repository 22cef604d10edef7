import { Anchor, Group, Text } from "@mantine/core";
import { Section } from "../components/Section.tsx";
import { settings as words } from "../words/settings.ts";

export function About() {
  return (
    <Section title={words.about}>
      <Text size="sm">{words.aboutText}</Text>
      <Group>
        <Anchor href="/schema" size="sm">
          {words.api}
        </Anchor>
        <Text size="sm" c="dimmed">
          {words.licence}
        </Text>
      </Group>
    </Section>
  );
}
