import { ActionIcon, Anchor, Button, Group, NativeSelect, Paper, Stack, Text, Title } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "wouter";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

interface UsedInEditorProps {
  document: DocumentDoc;
  titles: ReadonlyMap<string, string>;
}

/** Add a document to chats and remove it from them. */
export function UsedInEditor({ document: { id, activeSessions }, titles }: UsedInEditorProps) {
  const { api } = useAccountApi();
  return (
    <Stack gap="xs" component="section" aria-label={t("reader.chats")}>
      <Title order={3} size="h5">
        {t("reader.chats")}
      </Title>
      {activeSessions.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("reader.noChats")}
        </Text>
      )}
      <Group gap="xs">
        {activeSessions.map((sessionId) => {
          const title = titles.get(sessionId) ?? t("reader.unknownChat");
          return (
            <Paper key={sessionId} withBorder maw="100%">
              <Group gap={0} wrap="nowrap">
                <Anchor component={Link} href={`/s/${sessionId}`} size="sm" ps="sm" dir="auto" truncate>
                  {title}
                </Anchor>
                <ActionIcon
                  size={44}
                  variant="transparent"
                  color="gray"
                  aria-label={t("reader.removeFromChat", { title })}
                  onClick={() => void api.returnDocument(id, sessionId)}
                >
                  <IconX size={16} />
                </ActionIcon>
              </Group>
            </Paper>
          );
        })}
      </Group>
      <AddToChat documentId={id} sessionIds={activeSessions} titles={titles} />
    </Stack>
  );
}

interface AddToChatProps {
  documentId: string;
  /** The chats that use the document already. */
  sessionIds: readonly string[];
  titles: ReadonlyMap<string, string>;
}

function AddToChat({ documentId, sessionIds, titles }: AddToChatProps) {
  const { api } = useAccountApi();
  const [chosen, setChosen] = useState("");
  const others = [...titles].filter(([id]) => !sessionIds.includes(id));
  if (others.length === 0) return null;

  async function add() {
    setChosen("");
    await api.borrow(documentId, chosen);
  }

  return (
    <Group gap="xs">
      <NativeSelect
        size="md"
        aria-label={t("reader.chooseChat")}
        data={[
          { value: "", label: t("reader.chooseChat") },
          ...others.map(([value, label]) => ({ value, label })),
        ]}
        value={chosen}
        onChange={(event) => setChosen(event.currentTarget.value)}
      />
      <Button size="md" variant="light" disabled={!chosen} onClick={() => void add()}>
        {t("reader.addToChat")}
      </Button>
    </Group>
  );
}
