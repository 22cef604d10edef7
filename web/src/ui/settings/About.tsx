import { Anchor, Group, Text } from "@mantine/core";
import { Section } from "../components/Section.tsx";
import { t } from "../../locale/t.ts";

export function About() {
  return (
    <Section title={t("settings.about")}>
      <Text size="sm">{t("settings.aboutText")}</Text>
      <Group>
        <Anchor href="/schema" size="sm">
          {t("settings.api")}
        </Anchor>
        <Text size="sm" c="dimmed">
          {t("settings.license")}
        </Text>
      </Group>
    </Section>
  );
}
