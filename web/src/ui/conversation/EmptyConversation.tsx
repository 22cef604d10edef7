import { Stack, Text, Title } from "@mantine/core";
import { Suspense } from "react";
import { useAccountApi, useRows, useSync } from "../../client/backendClient.tsx";
import { lazyComponent } from "../lazyComponent.ts";
import { ModelOffer } from "../sync/ModelOffer.tsx";
import { t } from "../../locale/t.ts";

const GettingStarted = lazyComponent(() => import("../documents/GettingStarted.tsx"));

/** Show the content of a chat before its first question. A user without documents sees how to get started. */
export function EmptyConversation({ sessionId }: { sessionId: string }) {
  const { api } = useAccountApi();
  const documents = useRows("documents", { limit: 1 });
  // Until its first sync, a new device has no documents even if the account has some.
  const isNewUser = useSync()?.syncedAt && documents?.length === 0;
  return (
    // On a phone, omit the space above, which would move the sample document off the screen.
    <Stack pt={isNewUser ? { base: 0, sm: "20dvh" } : "20dvh"} gap="xs">
      <Title order={2}>{t("chat.emptyTitle")}</Title>
      {isNewUser ? (
        <Suspense>
          <GettingStarted add={(files) => void api.addFiles(files, sessionId)} />
        </Suspense>
      ) : (
        <>
          <Text c="dimmed">{`${t("chat.empty")} ${t("chat.textOnly")}`}</Text>
          <ModelOffer />
        </>
      )}
    </Stack>
  );
}
