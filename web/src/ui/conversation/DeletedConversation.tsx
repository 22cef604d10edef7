import { Anchor, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

/** Return whether a chat was deleted while it was open. Sending a message in such a chat would create it again. */
export function useDeleted(sessionId: string): boolean {
  const rows = useRows("sessions", { selector: { id: sessionId } });
  const [existed, setExisted] = useState(false);
  if (rows?.length === 1 && !existed) setExisted(true);
  return existed && rows?.length === 0;
}

/** Show a notice in place of a chat that was deleted while it was open. */
export function DeletedConversation({ sessionId }: { sessionId: string }) {
  const { drafts } = useAccountApi();
  const [hadDraft] = useState(() => drafts.text(sessionId) !== "");
  return (
    <Stack pt="20dvh" gap="xs" role="status">
      <Text>{t("chat.deleted")}</Text>
      {hadDraft && <Text>{t("chat.draftKept")}</Text>}
      <Anchor component={Link} href="/">
        {t("sidebar.newChat")}
      </Anchor>
    </Stack>
  );
}
