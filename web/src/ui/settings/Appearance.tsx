import { SegmentedControl, useMantineColorScheme, type MantineColorScheme } from "@mantine/core";
import { Section } from "../components/Section.tsx";
import { t } from "../../locale/t.ts";

const SCHEMES: readonly MantineColorScheme[] = ["auto", "light", "dark"];

export function Appearance() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Section title={t("settings.appearance")}>
      <SegmentedControl
        aria-label={t("settings.theme")}
        data={SCHEMES.map((value) => ({ value, label: t(`settings.theme.${value}`) }))}
        value={colorScheme}
        onChange={(chosen) => setColorScheme(chosen as MantineColorScheme)}
        fullWidth
      />
    </Section>
  );
}
