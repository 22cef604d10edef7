import { Alert, Button, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { QUOTES } from "../../core/chat/citation.ts";
import type { SyncKind } from "../../core/sync/syncStatus.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import type { AnswerDraft, AssistantState } from "../../backend/api.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { noAssistantReason } from "./noAssistantReason.ts";
import { t } from "../../locale/t.ts";
import { rejectionMessage } from "../rejectionMessage.ts";

/** Time after the last change of an unfinished answer at which the answer counts as abandoned. */
const STALE_MS = 60_000;

interface Props {
  turn: EpisodeDoc;
  writing: AnswerDraft | undefined;
  assistant: AssistantState | undefined;
  kind: SyncKind | undefined;
  isLast: boolean;
}

/**
 * Show the line below an answer: why the answer is incomplete, why no assistant answered, or whether an assistant will
 * answer later.
 */
export function AnswerStatus({ turn, writing, assistant, kind, isLast }: Props) {
  if (writing) return null;
  if (turn.syncError) return <Alert color="orange">{rejectionMessage(turn.syncError)}</Alert>;
  const retryError = assistant?.keptAnswers[turn.id];
  if (retryError !== undefined) return <Note text={`${t("chat.retryFailed")} ${retryError}`} />;
  if (turn.status === "failed")
    return <Alert color="red">{t(turn.aiResponse.trim() ? "chat.cutOff" : "chat.noAnswer")}</Alert>;
  if (turn.status === "stopped")
    return <Note text={t(turn.aiResponse.trim() ? "chat.stoppedPartial" : "chat.stopped")} />;
  if (turn.status === "streaming" || (turn.status === "queued" && !turn.model))
    return <Unfinished turn={turn} />;
  if (turn.model !== QUOTES) return null;
  return <Quoted turn={turn} assistant={assistant} kind={kind} isLast={isLast} />;
}

function Note({ text }: { text: string }) {
  return (
    <Text size="sm" c="dimmed" mt="xs">
      {text}
    </Text>
  );
}

function Unfinished({ turn }: { turn: EpisodeDoc }) {
  const [isStale, setStale] = useState(false);
  useEffect(() => {
    const remainingMs = Date.parse(turn.updatedAt) + STALE_MS - Date.now();
    const timer = setTimeout(() => setStale(true), Math.max(remainingMs, 0));
    return () => clearTimeout(timer);
  }, [turn.updatedAt]);
  if (!isStale) return <Note text={t("chat.answeredElsewhere")} />;
  return <Alert color="orange">{t(turn.aiResponse ? "chat.interrupted" : "chat.unanswered")}</Alert>;
}

/**
 * Show the status of a quotation answer, with a button to defer the question if an assistant is available. Only the
 * last answer of a chat says why no assistant answered.
 */
function Quoted({ turn, assistant, kind, isLast }: Omit<Props, "writing">) {
  const { api } = useAccountApi();
  const isDeferred = assistant?.deferred.includes(turn.id) ?? false;
  const available = assistant?.assistant?.available;
  const reason = isLast ? noAssistantReason(available, kind) : "";
  const text =
    `${t(turn.citations.length > 0 ? "chat.notAnsweredQuoted" : "chat.notAnswered")} ${reason}`.trim();
  if (!available) return <Note text={text} />;
  return (
    <>
      <Note text={isDeferred ? t("chat.askLaterOn") : text} />
      <Button
        size="compact-sm"
        variant="subtle"
        px={0}
        onClick={() => void api.deferQuestion(turn.id, !isDeferred)}
      >
        {isDeferred ? t("chat.askLaterOff") : t("chat.askLater")}
      </Button>
    </>
  );
}
