import { Button, Group, Text } from "@mantine/core";
import { useInstall } from "../appInstall.ts";
import { Section } from "../components/Section.tsx";
import { t } from "../../locale/t.ts";

export function Install() {
  const { installed, install } = useInstall();
  return (
    <Section title={t("settings.install")} hint={t("settings.installHint")}>
      {installed ? (
        <Text size="sm">{t("settings.installed")}</Text>
      ) : install ? (
        <Group>
          <Button variant="default" onClick={() => void install()}>
            {t("settings.install")}
          </Button>
        </Group>
      ) : (
        <Text size="sm">{t("settings.installByMenu")}</Text>
      )}
    </Section>
  );
}
