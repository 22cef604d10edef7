/** Everything out in one file, and in again. */

import { Button, FileButton, Group, Text } from "@mantine/core";
import { useState } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import type { ExportCode } from "../../core/errors.ts";
import { said } from "../errorMessage.ts";
import { Section } from "../components/Section.tsx";
import { t, type TextKey } from "../../locale/t.ts";

const IMPORT_ERRORS: Record<ExportCode, TextKey> = {
  ZIP_TOO_LARGE: "settings.importError.tooLarge",
  ZIP_TOO_MANY_FILES: "settings.importError.tooManyFiles",
  ZIP_INFLATES: "settings.importError.inflates",
  ZIP_DAMAGED: "settings.importError.damaged",
  ZIP_CUT_OFF: "settings.importError.cutOff",
  NOT_AN_EXPORT: "settings.importError.notAnExport",
};

export function ExportImport() {
  const { api } = useAccountApi();
  const [busy, setBusy] = useState<"out" | "in">();
  const [told, setTold] = useState<string>();

  async function work(which: "out" | "in", doing: () => Promise<string | undefined>) {
    setBusy(which);
    setTold(t("settings.working"));
    setTold(await doing().catch((error: Error) => importError(error)));
    setBusy(undefined);
  }

  async function takeOut() {
    download(await api.exportAccount(), `vademecum-export-${new Date().toISOString().slice(0, 10)}.zip`);
    return undefined;
  }

  async function bringIn(zip: Blob) {
    const { added, existing, leftOut } = await api.importAccount(zip);
    return t("settings.imported", { added, existing, leftOut });
  }

  return (
    <Section title={t("settings.exportTitle")} hint={t("settings.exportHint")}>
      <Group>
        <Button variant="default" loading={busy === "out"} onClick={() => void work("out", takeOut)}>
          {t("settings.export")}
        </Button>
        <FileButton
          accept=".zip,application/zip"
          onChange={(file) => file && void work("in", () => bringIn(file))}
        >
          {(props) => (
            <Button {...props} variant="default" loading={busy === "in"}>
              {t("settings.import")}
            </Button>
          )}
        </FileButton>
      </Group>
      <Text size="sm" c="dimmed">
        {t("settings.importHint")}
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

function importError(error: Error): string {
  const key = IMPORT_ERRORS[error.message as ExportCode] as TextKey | undefined;
  return key ? t(key) : said(error);
}
