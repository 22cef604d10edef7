/** Before the first question. Who has no document yet is shown what to begin with. */

import { Stack, Text, Title } from "@mantine/core";
import { Suspense } from "react";
import { useAccountApi, useRows, useSync } from "../../client/backendClient.tsx";
import { part } from "../lazyComponent.ts";
import { t } from "../../locale/t.ts";

const GettingStarted = part(() => import("../documents/GettingStarted.tsx"));

export function EmptyConversation({ sessionId }: { sessionId: string }) {
  const { api } = useAccountApi();
  const documents = useRows("documents", { limit: 1 });
  // A new device has none either, until it has heard from the server what there is.
  const isFirst = useSync()?.syncedAt && documents?.length === 0;
  return (
    // On a phone the sample would be out of sight below.
    <Stack pt={isFirst ? { base: 0, sm: "20dvh" } : "20dvh"} gap="xs">
      <Title order={2}>{t("chat.emptyTitle")}</Title>
      {isFirst ? (
        <Suspense>
          <GettingStarted add={(files) => void api.addFiles(files, sessionId)} />
        </Suspense>
      ) : (
        <Text c="dimmed">{`${t("chat.empty")} ${t("chat.textOnly")}`}</Text>
      )}
    </Stack>
  );
}
