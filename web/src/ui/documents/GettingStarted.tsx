import { Button, List, Stack, Text } from "@mantine/core";
import sampleDocument from "../../locale/sampleDocument.md?raw";
import { t } from "../../locale/t.ts";

const STEPS = ["add", "ask", "offline"] as const;

/** Show the first steps for a new user, and offer a sample document. */
export default function GettingStarted({ add }: { add: (files: File[]) => void }) {
  const addSample = () =>
    add([new File([sampleDocument], t("documents.sampleName"), { type: "text/markdown" })]);
  return (
    <Stack maw="var(--reading-width)" gap="lg" py="md">
      <List type="ordered" spacing="md" withPadding>
        {STEPS.map((step) => (
          <List.Item key={step}>
            <Text fw={600}>{t(`documents.try.${step}`)}</Text>
            <Text c="dimmed">{t(`documents.try.${step}Text`)}</Text>
          </List.Item>
        ))}
      </List>
      <Stack gap={4} align="start">
        <Button size="md" variant="light" onClick={addSample}>
          {t("documents.sample")}
        </Button>
        <Text size="sm" c="dimmed">
          {t("documents.sampleHint")}
        </Text>
      </Stack>
      <Text size="sm" c="dimmed">
        {t("chat.textOnly")}
      </Text>
    </Stack>
  );
}
