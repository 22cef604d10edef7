/** What there is to know of a document, in one line. */

import { Text } from "@mantine/core";
import { placeOf } from "../../core/documents/documentList.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import type { SyncSummary } from "../../backend/sync/syncCoordinator.ts";
import { documents as words } from "../words/documents.ts";

const PLACES = { here: words.onlyHere, "not yet there": words.notYetThere, both: words.onServer };

export function DocumentDetails({
  document,
  sync,
}: {
  document: DocumentDoc;
  sync: SyncSummary | undefined;
}) {
  const { pageCount, size, createdAt, lastAccessedAt } = document;
  const facts = [
    pageCount !== undefined && words.pages(pageCount),
    words.size(size),
    words.added(createdAt),
    lastAccessedAt > createdAt && words.used(lastAccessedAt),
    sync && PLACES[placeOf(document, sync)],
  ];
  return (
    <Text size="sm" c="dimmed">
      {facts.filter(Boolean).join(" · ")}
    </Text>
  );
}
