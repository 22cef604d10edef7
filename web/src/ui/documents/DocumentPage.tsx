/** One document: what it is, who uses it, and its text page by page. `?passage=<block>/<chunk>` marks a passage. */

import { Anchor, Button, Container, Group, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { stateOf } from "../../model/library.ts";
import type { DocumentDoc } from "../../model/rows.ts";
import { useSync } from "../desk.tsx";
import { documents as words } from "../words/documents.ts";
import { refused } from "../words/refusals.ts";
import { reading } from "../words/reading.ts";
import { About } from "./About.tsx";
import { Borrowing } from "./Borrowing.tsx";
import { DeleteDialog } from "./DeleteDialog.tsx";
import { Loading } from "./Loading.tsx";
import { passageIn } from "./passageLink.ts";
import { Reading } from "./Reading.tsx";
import { StateBadge } from "./StateBadge.tsx";
import { useLibrary, type Library } from "./useLibrary.ts";

export function DocumentPage({ id }: { id: string }) {
  const library = useLibrary();
  const document = library?.documents.find((row) => row.id === id);
  return (
    <Container size="md" py="lg">
      <Stack gap="md">
        <Anchor component={Link} href="/documents" size="sm" py="xs">
          {reading.back}
        </Anchor>
        {!library && <Loading />}
        {library && !document && <Text>{reading.gone}</Text>}
        {library && document && <Opened document={document} library={library} />}
      </Stack>
    </Container>
  );
}

function Opened({ document, library }: { document: DocumentDoc; library: Library }) {
  const sync = useSync();
  const passage = passageIn(useSearch());
  const [, go] = useLocation();
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
          <About document={document} sync={sync} />
          {state.kind === "refused" && <Text size="sm">{refused(state)}</Text>}
          {state.kind === "failed" && <Text size="sm">{state.detail || words.failedWithout}</Text>}
        </Stack>
        <Button variant="light" color="red" onClick={() => setDeleting(true)} flex="none">
          {words.remove}
        </Button>
      </Group>
      <Borrowing document={document} titles={library.titles} />
      <Reading document={document} passage={passage} />
      <DeleteDialog
        documents={library.documents}
        ids={deleting ? [document.id] : []}
        onClose={() => setDeleting(false)}
        onDeleted={() => go("/documents", { replace: true })}
      />
    </>
  );
}
