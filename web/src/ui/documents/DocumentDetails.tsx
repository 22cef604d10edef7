import { Text } from "@mantine/core";
import { placeOf } from "../../core/documents/documentList.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import type { SyncSummary } from "../../backend/api.ts";
import { ago, bytes, date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const LOCATIONS = {
  here: "documents.onDeviceOnly",
  "not yet there": "documents.waitingToSync",
  both: "documents.onServer",
} as const;

/** Show the number of pages, the size, the dates and the location of a document in one line. */
export function DocumentDetails({
  document,
  sync,
}: {
  document: DocumentDoc;
  sync: SyncSummary | undefined;
}) {
  const { pageCount, size, createdAt, lastAccessedAt } = document;
  const details = [
    pageCount !== undefined && t("documents.pages", { n: pageCount }),
    bytes(size),
    t("documents.added", { date: date(createdAt) }),
    lastAccessedAt > createdAt && t("documents.used", { when: ago(lastAccessedAt) }),
    sync && t(LOCATIONS[placeOf(document, sync)]),
  ];
  return (
    <Text size="sm" c="dimmed">
      {details.filter(Boolean).join(" · ")}
    </Text>
  );
}
