/** What there is to know of a document, in one line. */

import { Text } from "@mantine/core";
import { placeOf } from "../../core/documents/documentList.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import type { SyncSummary } from "../../backend/sync/syncCoordinator.ts";
import { ago, bytes, date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const PLACES = {
  here: "documents.onlyHere",
  "not yet there": "documents.waiting",
  both: "documents.onServer",
} as const;

export function DocumentDetails({
  document,
  sync,
}: {
  document: DocumentDoc;
  sync: SyncSummary | undefined;
}) {
  const { pageCount, size, createdAt, lastAccessedAt } = document;
  const facts = [
    pageCount !== undefined && t("documents.pages", { n: pageCount }),
    bytes(size),
    t("documents.added", { date: date(createdAt) }),
    lastAccessedAt > createdAt && t("documents.used", { when: ago(lastAccessedAt) }),
    sync && t(PLACES[placeOf(document, sync)]),
  ];
  return (
    <Text size="sm" c="dimmed">
      {facts.filter(Boolean).join(" · ")}
    </Text>
  );
}
