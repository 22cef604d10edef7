import { Button, Container, FileButton, Group, Stack, Text, Title } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useMemo, useState } from "react";
import { filterDocuments, sortDocuments, type Order } from "../../core/documents/documentList.ts";
import { suggestCleanup } from "../../core/documents/cleanup_candidates.ts";
import { useAccountApi, useSync } from "../../client/backendClient.tsx";
import { ModelOffer } from "../sync/ModelOffer.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { DocumentListControls } from "./DocumentListControls.tsx";
import { DeleteDialog } from "./DeleteDialog.tsx";
import { DocumentRow } from "./DocumentRow.tsx";
import { DocumentListSkeleton } from "./DocumentListSkeleton.tsx";
import { QuotaMeter, SUGGESTED } from "./QuotaMeter.tsx";
import { SelectionBar } from "./SelectionBar.tsx";
import GettingStarted from "./GettingStarted.tsx";
import { useLibrary, type Library } from "./useLibrary.ts";
import { useSelection } from "./useSelection.ts";
import { t } from "../../locale/t.ts";

/** Show the page with all documents. */
export function DocumentList() {
  const { api } = useAccountApi();
  const library = useLibrary();
  const add = (files: File[]) => void api.addFiles(files, null);
  return (
    <Container size="md" py="lg">
      <Stack gap="lg">
        <Group justify="space-between">
          <Title order={2}>{t("documents.title")}</Title>
          <FileButton multiple onChange={add}>
            {(props) => (
              <Button {...props} variant="light" leftSection={<IconPlus size={16} aria-hidden />}>
                {t("documents.add")}
              </Button>
            )}
          </FileButton>
        </Group>
        <ModelOffer />
        {!library && <DocumentListSkeleton />}
        {library?.documents.length === 0 && (
          <div>
            <Title order={3}>{t("documents.emptyTitle")}</Title>
            <GettingStarted add={add} />
          </div>
        )}
        {library && library.documents.length > 0 && <FilledList library={library} />}
      </Stack>
    </Container>
  );
}

function FilledList({ library: { documents, progress, titles } }: { library: Library }) {
  const sync = useSync();
  const selection = useSelection(documents);
  const [query, setQuery] = useState("");
  const [order, setOrder] = useState<{ by: Order; backwards: boolean }>({ by: "added", backwards: false });
  const [deleting, setDeleting] = useState<string[]>([]);
  const shown = useMemo(
    () => sortDocuments(filterDocuments(documents, query), order.by, order.backwards),
    [documents, query, order],
  );

  /** Select the least used documents and list them first, so that the user can review and delete them. */
  function selectLeastUsed() {
    setQuery("");
    setOrder({ by: "missed", backwards: false });
    // Leave out rejected documents, because deleting them would not help: they do not count toward the limit.
    const onServer = documents.filter(({ syncError }) => !syncError);
    selection.set(suggestCleanup(onServer, SUGGESTED).map(({ id }) => id));
    scrollTo({ top: 0 });
  }

  return (
    <>
      <QuotaMeter documents={documents} onChoose={selectLeastUsed} />
      <DocumentListControls query={query} onQuery={setQuery} order={order} onOrder={setOrder} />
      <SelectionBar shown={shown} selection={selection} onDelete={setDeleting} />
      {shown.length === 0 && <Text c="dimmed">{t("documents.noneFound")}</Text>}
      <PlainList gap={0} aria-label={t("documents.title")}>
        {shown.map((document) => (
          <DocumentRow
            key={document.id}
            document={document}
            progress={progress[document.id]}
            titles={titles}
            sync={sync}
            selected={selection.has(document.id)}
            onSelect={selection.toggle}
            onDelete={setDeleting}
            onChoose={selectLeastUsed}
          />
        ))}
      </PlainList>
      <DeleteDialog documents={documents} ids={deleting} onClose={() => setDeleting([])} />
    </>
  );
}
