/** The last question, to be asked in other words. */

import { Button, Group, Stack, Textarea } from "@mantine/core";
import { useState } from "react";
import type { EpisodeDoc } from "../../model/rows.ts";
import { useDesk } from "../desk.tsx";
import { stored } from "../tell.ts";
import { words } from "../words.ts";

export function Edit({ turn, onDone }: { turn: EpisodeDoc; onDone(): void }) {
  const { desk } = useDesk();
  const [text, setText] = useState(turn.userMessage);

  function send() {
    if (text.trim()) void stored(desk.answerAgain(turn.id, text.trim()), onDone);
    else onDone();
  }

  return (
    <Stack gap="xs">
      <Textarea
        autosize
        data-autofocus
        autoFocus
        aria-label={words.conversation.edit}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && onDone()}
      />
      <Group justify="end" gap="xs">
        <Button size="xs" variant="subtle" onClick={onDone}>
          {words.conversation.editCancel}
        </Button>
        <Button size="xs" onClick={send}>
          {words.conversation.editSend}
        </Button>
      </Group>
    </Stack>
  );
}
