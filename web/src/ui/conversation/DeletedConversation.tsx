/** A conversation that is deleted while it is open, here or elsewhere: what was said in it now would make it anew. */

import { Anchor, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { hasDraft } from "../drafts.ts";
import { t } from "../../locale/t.ts";

/** It was there since it was opened, and is not now. */
export function useDeleted(sessionId: string): boolean {
  const found = useRows("sessions", { selector: { id: sessionId } });
  const [wasThere, setWasThere] = useState(false);
  const isThere = found?.length === 1;
  if (isThere && !wasThere) setWasThere(true);
  return wasThere && found?.length === 0;
}

export function DeletedConversation({ sessionId }: { sessionId: string }) {
  const { account } = useAccountApi();
  const [isKept] = useState(() => hasDraft(account.userId, sessionId));
  return (
    <Stack pt="20dvh" gap="xs" role="status">
      <Text>{t("chat.deleted")}</Text>
      {isKept && <Text>{t("chat.draftKept")}</Text>}
      <Anchor component={Link} href="/">
        {t("sidebar.newChat")}
      </Anchor>
    </Stack>
  );
}
