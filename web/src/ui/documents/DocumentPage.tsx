import { Anchor, Button, Container, Group, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { stateOf } from "../../core/documents/documentList.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { useSync } from "../../client/backendClient.tsx";
import { DocumentDetails } from "./DocumentDetails.tsx";
import { UsedInEditor } from "./UsedInEditor.tsx";
import { DeleteDialog } from "./DeleteDialog.tsx";
import { DocumentListSkeleton } from "./DocumentListSkeleton.tsx";
import { passageIn } from "./passageLink.ts";
import { Reader } from "./Reader.tsx";
import { StateBadge } from "./StateBadge.tsx";
import { useLibrary, type Library } from "./useLibrary.ts";
import { t } from "../../locale/t.ts";
import { rejectionMessage } from "../rejectionMessage.ts";
import { failureText } from "./failureText.ts";

/** Show the page of a document: details, chats and text. `?passage=<block>/<chunk>` highlights a passage. */
export function DocumentPage({ id }: { id: string }) {
  const library = useLibrary();
  const document = library?.documents.find((row) => row.id === id);
  return (
    <Container size="md" py="lg">
      <Stack gap="md">
        <Anchor component={Link} href="/documents" size="sm" py="xs">
          {t("reader.back")}
        </Anchor>
        {!library && <DocumentListSkeleton />}
        {library && !document && <Text>{t("reader.documentMissing")}</Text>}
        {library && document && <LoadedDocument document={document} library={library} />}
      </Stack>
    </Container>
  );
}

function LoadedDocument({ document, library }: { document: DocumentDoc; library: Library }) {
  const sync = useSync();
  const passage = passageIn(useSearch());
  const [, navigate] = useLocation();
  const [deleting, setDeleting] = useState(false);
  const state = stateOf(document, library.progress[document.id]);
  return (
    <>
      <Group justify="space-between" align="start" wrap="nowrap">
        <Stack gap={4} miw={0}>
          <Title order={2} dir="auto">
            {document.filename}
          </Title>
          <Group gap="xs">
            <StateBadge state={state} />
          </Group>
          <DocumentDetails document={document} sync={sync} />
          {state.kind === "refused" && <Text size="sm">{rejectionMessage(state)}</Text>}
          {state.kind === "failed" && <Text size="sm">{failureText(state.detail)}</Text>}
        </Stack>
        <Button variant="light" color="red" onClick={() => setDeleting(true)} flex="none">
          {t("common.delete")}
        </Button>
      </Group>
      <UsedInEditor document={document} titles={library.titles} />
      <Reader document={document} passage={passage} />
      <DeleteDialog
        documents={library.documents}
        ids={deleting ? [document.id] : []}
        onClose={() => setDeleting(false)}
        onDeleted={() => navigate("/documents", { replace: true })}
      />
    </>
  );
}
