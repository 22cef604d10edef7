import { Button, Menu, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

/** Show a menu of the documents that are not in this chat yet. */
export default function AddDocumentMenu({
  sessionId,
  documents,
}: {
  sessionId: string;
  documents: readonly DocumentDoc[];
}) {
  const { api } = useAccountApi();
  const others = documents
    .filter(({ activeSessions }) => !activeSessions.includes(sessionId))
    .toSorted((a, b) => a.filename.localeCompare(b.filename));
  return (
    <Menu position="bottom-start" defaultOpened>
      <Menu.Target>
        {/* This button replaces the one that opened the menu. It gets the focus when the menu closes. */}
        <Button size="compact-sm" variant="subtle" leftSection={<IconPlus size={14} />} autoFocus>
          {t("chat.addDocument")}
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah="50dvh" maw="min(30rem, 100vw - 2rem)" style={{ overflowY: "auto" }}>
        {others.length === 0 && <Menu.Label>{t("chat.allAdded")}</Menu.Label>}
        {others.map(({ id, filename }) => (
          <Menu.Item key={id} onClick={() => void api.borrowInto(id, sessionId)}>
            <Text size="sm" truncate title={filename} dir="auto">
              {filename}
            </Text>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
