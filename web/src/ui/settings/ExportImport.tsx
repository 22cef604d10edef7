/** Everything out in one file, and in again. */

import { Button, FileButton, Group, Text } from "@mantine/core";
import { useState } from "react";
import { useDesk } from "../../client/backendClient.tsx";
import type { ExportCode } from "../../core/errors.ts";
import { said } from "../errorMessage.ts";
import { Section } from "../components/Section.tsx";
import { settings as words } from "../words/settings.ts";

export function ExportImport() {
  const { desk } = useDesk();
  const [busy, setBusy] = useState<"out" | "in">();
  const [told, setTold] = useState<string>();

  async function work(which: "out" | "in", doing: () => Promise<string | undefined>) {
    setBusy(which);
    setTold(words.working);
    setTold(await doing().catch((error: Error) => words.refused[error.message as ExportCode] ?? said(error)));
    setBusy(undefined);
  }

  async function takeOut() {
    download(await desk.takeOut(), `vademecum-export-${new Date().toISOString().slice(0, 10)}.zip`);
    return undefined;
  }

  async function bringIn(zip: Blob) {
    const { added, existing, leftOut } = await desk.bringIn(zip);
    return words.imported(added, existing, leftOut);
  }

  return (
    <Section title={words.takeout} hint={words.takeoutHint}>
      <Group>
        <Button variant="default" loading={busy === "out"} onClick={() => void work("out", takeOut)}>
          {words.export}
        </Button>
        <FileButton
          accept=".zip,application/zip"
          onChange={(file) => file && void work("in", () => bringIn(file))}
        >
          {(props) => (
            <Button {...props} variant="default" loading={busy === "in"}>
              {words.import}
            </Button>
          )}
        </FileButton>
      </Group>
      <Text size="sm" c="dimmed">
        {words.importHint}
      </Text>
      <Text size="sm" role="status">
        {told}
      </Text>
    </Section>
  );
}

function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser reads it after the click
}
