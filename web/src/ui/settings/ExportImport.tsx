import { Button, FileButton, Group, Text } from "@mantine/core";
import { useState } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import type { ExportCode } from "../../core/errors.ts";
import { errorMessage } from "../errorMessage.ts";
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

/** Show buttons to export all data to a ZIP file and to import such a file. */
export function ExportImport() {
  const { api } = useAccountApi();
  const [busy, setBusy] = useState<"export" | "import">();
  const [status, setStatus] = useState<string>();

  async function run(task: "export" | "import", work: () => Promise<string | undefined>) {
    setBusy(task);
    setStatus(t("settings.working"));
    setStatus(await work().catch((error: Error) => importError(error)));
    setBusy(undefined);
  }

  async function exportAll() {
    download(await api.exportAccount(), `vademecum-export-${new Date().toISOString().slice(0, 10)}.zip`);
    return undefined;
  }

  async function importZip(zip: Blob) {
    const { added, existing, leftOut } = await api.importAccount(zip);
    return t("settings.imported", { added, existing, leftOut });
  }

  return (
    <Section title={t("settings.exportTitle")} hint={t("settings.exportHint")}>
      <Group>
        <Button variant="default" loading={busy === "export"} onClick={() => void run("export", exportAll)}>
          {t("settings.export")}
        </Button>
        <FileButton
          accept=".zip,application/zip"
          onChange={(file) => file && void run("import", () => importZip(file))}
        >
          {(props) => (
            <Button {...props} variant="default" loading={busy === "import"}>
              {t("settings.import")}
            </Button>
          )}
        </FileButton>
      </Group>
      <Text size="sm" c="dimmed">
        {t("settings.importHint")}
      </Text>
      <Text size="sm" role="status">
        {status}
      </Text>
    </Section>
  );
}

function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // not at once: the browser reads the URL after the click
}

function importError(error: Error): string {
  const key = IMPORT_ERRORS[error.message as ExportCode] as TextKey | undefined;
  return key ? t(key) : errorMessage(error);
}
