import { Alert, Box, Button, Group } from "@mantine/core";
import { useEffect, useState } from "react";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import style from "./Conversation.module.css";
import { list } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

interface Props {
  message: string;
  sessionId: string;
  /** Id of the message's turn. It is answered again once documents are added. */
  episodeId: string | undefined;
  onDone(): void;
}

/** Offer to add the documents that a message mentions to the chat: "Found 'lease.pdf'. Include it?" */
export function IncludeOffer({ message, sessionId, episodeId, onDone }: Props) {
  const { api } = useAccountApi();
  const [found, setFound] = useState<DocumentDoc[]>([]);
  useEffect(() => {
    let isStale = false;
    void api.mentionedDocuments(message, sessionId).then((documents) => isStale || setFound(documents));
    return () => void (isStale = true);
  }, [api, message, sessionId]);
  if (found.length === 0) return null;

  async function include(documents: readonly DocumentDoc[]) {
    for (const { id } of documents) await api.includeDocument(id, sessionId);
    if (episodeId) await api.regenerateAnswer(episodeId);
    onDone();
  }

  return (
    // Placed above the composer, because the end of the conversation may be out of sight.
    <Box className={style["offer"]} px="md" pb="xs">
      <Alert
        role="status"
        maw="var(--reading-width)"
        mx="auto"
        title={t("chat.found", {
          n: found.length,
          names: list(found.map(({ filename }) => t("common.quoted", { name: filename }))),
        })}
      >
        <Group gap="xs">
          <Button size="xs" onClick={() => void include(found)}>
            {t("chat.include", { n: found.length })}
          </Button>
          {found.length > 1 &&
            found.map((document) => (
              <Button key={document.id} size="xs" variant="light" onClick={() => void include([document])}>
                {t("chat.includeName", { name: document.filename })}
              </Button>
            ))}
          <Button size="xs" variant="subtle" onClick={onDone}>
            {t("chat.notNow")}
          </Button>
        </Group>
      </Alert>
    </Box>
  );
}
