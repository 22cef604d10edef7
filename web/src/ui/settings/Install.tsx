import { Button, Group, Text } from "@mantine/core";
import { useInstall } from "../appInstall.ts";
import { Section } from "../components/Section.tsx";
import { settings as words } from "../words/settings.ts";

export function Install() {
  const { installed, install } = useInstall();
  return (
    <Section title={words.install} hint={words.installHint}>
      {installed ? (
        <Text size="sm">{words.installed}</Text>
      ) : install ? (
        <Group>
          <Button variant="default" onClick={() => void install()}>
            {words.install}
          </Button>
        </Group>
      ) : (
        <Text size="sm">{words.installByMenu}</Text>
      )}
    </Section>
  );
}
