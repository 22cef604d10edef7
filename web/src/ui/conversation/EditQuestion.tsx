import { Button, Group, Stack, Textarea } from "@mantine/core";
import { useState, type KeyboardEvent } from "react";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { afterSaving } from "../notify.ts";
import { t } from "../../locale/t.ts";

/** Show a form to edit and resend the last question, with the same keys as the composer. */
export function EditQuestion({ turn, onDone }: { turn: EpisodeDoc; onDone(): void }) {
  const { api } = useAccountApi();
  const [text, setText] = useState(turn.userMessage);

  function send() {
    const question = text.trim();
    if (question) void afterSaving(api.regenerateAnswer(turn.id, question), onDone);
    else onDone();
  }

  function onKey(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") onDone();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    send();
  }

  return (
    <Stack component="form" gap="xs">
      <Textarea
        autosize
        data-autofocus
        autoFocus
        aria-label={t("chat.edit")}
        dir="auto"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKey}
      />
      <Group justify="end" gap="xs">
        <Button size="xs" variant="subtle" onClick={onDone}>
          {t("common.cancel")}
        </Button>
        <Button size="xs" onClick={send}>
          {t("chat.resend")}
        </Button>
      </Group>
    </Stack>
  );
}
