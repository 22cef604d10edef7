import { SegmentedControl, useMantineColorScheme, type MantineColorScheme } from "@mantine/core";
import { Section } from "../components/Section.tsx";
import { settings as words } from "../words/settings.ts";

const SCHEMES: { value: MantineColorScheme; label: string }[] = [
  { value: "auto", label: words.auto },
  { value: "light", label: words.light },
  { value: "dark", label: words.dark },
];

export function Appearance() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Section title={words.appearance}>
      <SegmentedControl
        aria-label={words.theme}
        data={SCHEMES}
        value={colorScheme}
        onChange={(chosen) => setColorScheme(chosen as MantineColorScheme)}
        fullWidth
      />
    </Section>
  );
}
