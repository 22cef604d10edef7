import { Box, Button, CloseButton, Group, Pill, Text, Title } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Suspense, useState } from "react";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { lazyComponent } from "../lazyComponent.ts";
import { t } from "../../locale/t.ts";
import { sessionTitle } from "../sessionTitle.ts";

const ProjectLink = lazyComponent(() => import("../projects/ProjectLink.tsx"));
const ModeControl = lazyComponent(() => import("./ModeControl.tsx"));
const AddDocumentMenu = lazyComponent(() => import("./AddDocumentMenu.tsx"));

/** Maximum number of documents in a list that is not collapsed. On a narrow screen, the maximum is one. */
const SHOWN = 8;

interface Props {
  sessionId: string;
  /** Id of the project of a new chat. The project is stored with the first message. */
  project: string | null;
  isDeleted: boolean;
}

/** Show the title, project and mode of a chat, and its documents. */
export function ConversationHeader({ sessionId, project, isDeleted }: Props) {
  const session = useRows("sessions", { selector: { id: sessionId } })?.[0];
  const projectId = session ? session.projectId : project;
  return (
    <Box px="md" py="xs" style={{ borderBottom: "1px solid var(--mantine-color-default-border)" }}>
      <Box maw="var(--reading-width)" mx="auto">
        <Suspense>{projectId && <ProjectLink id={projectId} />}</Suspense>
        <Group justify="space-between">
          <Title order={2} size="h5" lineClamp={2} dir="auto" flex="1 1 5rem">
            {session ? sessionTitle(session) : t("sidebar.newChat")}
          </Title>
          <Suspense>{session && <ModeControl sessionId={sessionId} mode={session.mode} />}</Suspense>
        </Group>
        {!isDeleted && <Documents sessionId={sessionId} />}
      </Box>
    </Box>
  );
}

function Documents({ sessionId }: { sessionId: string }) {
  const { api, account } = useAccountApi();
  const documents = useRows("documents") ?? [];
  const borrowed = documents.filter(({ activeSessions }) => activeSessions.includes(sessionId));
  const [open, setOpen] = useState(false);
  const isLong = borrowed.length > SHOWN;
  const isCollapsed = borrowed.length > 1 && !open;
  return (
    <Group
      gap="xs"
      mt={4}
      mah="30dvh"
      style={{ overflowY: "auto" }}
      role="group"
      aria-label={t("chat.documents")}
    >
      {borrowed.length > 1 && (
        <Button
          size="compact-sm"
          variant="subtle"
          {...(isLong ? {} : { hiddenFrom: "sm" })}
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          {t("chat.documentCount", { n: borrowed.length })}
        </Button>
      )}
      {(isCollapsed && isLong ? [] : borrowed).map(({ id, filename }) => (
        <Pill
          key={id}
          size="lg"
          maw="min(16rem, 100%)"
          {...(isCollapsed ? { visibleFrom: "sm" } : {})}
          styles={{ label: { display: "flex", alignItems: "center" } }}
        >
          <Text size="sm" truncate title={filename} dir="auto">
            {filename}
          </Text>
          <CloseButton
            size="sm"
            aria-label={t("chat.removeDocument", { name: filename })}
            onClick={() => void api.returnDocument(id, sessionId)}
          />
        </Pill>
      ))}
      {documents.length > 0 && <AddDocument sessionId={sessionId} documents={documents} />}
      {borrowed.length > 0 && !account.limits.searchesDocuments && (
        <Text size="sm" c="dimmed">
          {t("chat.freeTier")}
        </Text>
      )}
    </Group>
  );
}

/** Show a button that loads and opens the menu for adding documents. */
function AddDocument({ sessionId, documents }: { sessionId: string; documents: readonly DocumentDoc[] }) {
  const [opened, setOpened] = useState(false);
  const button = (
    <Button
      size="compact-sm"
      variant="subtle"
      leftSection={<IconPlus size={14} />}
      onClick={() => setOpened(true)}
    >
      {t("chat.addDocument")}
    </Button>
  );
  if (!opened) return button;
  return (
    <Suspense fallback={button}>
      <AddDocumentMenu sessionId={sessionId} documents={documents} />
    </Suspense>
  );
}
