import { ActionIcon, Box, FileButton, Group, Textarea } from "@mantine/core";
import { IconArrowUp, IconPaperclip, IconPlayerStopFilled } from "@tabler/icons-react";
import { useRef, type KeyboardEvent } from "react";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useDraft } from "../drafts.ts";
import { afterSaving } from "../notify.ts";
import style from "./Conversation.module.css";
import { t } from "../../locale/t.ts";

interface Props {
  sessionId: string;
  /** The id of the turn that is being answered, if any. */
  answering: string | undefined;
  last: EpisodeDoc | undefined;
  onAsk(message: string): Promise<void>;
}

/**
 * Show the text box for a message. Enter sends it, Shift Enter adds a line, Esc stops the answer, and Arrow Up in an
 * empty box restores the last message. Unsent text is kept as a draft.
 */
export function Composer({ sessionId, answering, last, onAsk }: Props) {
  const { api } = useAccountApi();
  const [text, setText] = useDraft(sessionId);
  const box = useRef<HTMLTextAreaElement>(null);
  const sending = useRef(false);
  const stop = () => void (answering && api.stopAnswer(answering));

  async function send() {
    const message = text.trim();
    if (!message || answering || sending.current) return;
    sending.current = true;
    // Clear the box only if the user has not typed while the message was being stored.
    await afterSaving(onAsk(message), () => (box.current?.value ?? text) === text && setText(""));
    sending.current = false;
  }

  function onKey(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") stop();
    if (event.key === "ArrowUp" && !text && last && !answering) {
      event.preventDefault();
      setText(last.userMessage);
    }
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void send();
  }

  return (
    <Box className={style["composer"]} p="md" pt={0} component="section" aria-label={t("chat.ask")}>
      <Group maw="var(--reading-width)" mx="auto" align="end" wrap="nowrap" gap="xs">
        <FileButton multiple onChange={(files) => void api.addFiles(files, sessionId)}>
          {(props) => (
            <ActionIcon {...props} size={44} variant="subtle" aria-label={t("chat.attach")}>
              <IconPaperclip size={20} />
            </ActionIcon>
          )}
        </FileButton>
        <Textarea
          ref={box}
          data-draft
          autosize
          maxRows={8}
          size="md"
          aria-label={t("chat.ask")}
          placeholder={t("chat.ask")}
          dir="auto"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKey}
        />
        {answering ? (
          <ActionIcon size={44} aria-label={t("common.stop")} onClick={stop}>
            <IconPlayerStopFilled size={20} />
          </ActionIcon>
        ) : (
          <ActionIcon
            size={44}
            aria-label={t("chat.send")}
            onClick={() => void send()}
            // Not `disabled`: this button replaces "Stop", which may have the focus, and `disabled` would remove it.
            data-disabled={!text.trim()}
            aria-disabled={!text.trim()}
          >
            <IconArrowUp size={20} />
          </ActionIcon>
        )}
      </Group>
    </Box>
  );
}
