/** What is to be said of an answer: who gave it, why it ended, what comes later. */

import { Alert, Button, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { QUOTES } from "../../core/chat/citation.ts";
import type { SyncKind } from "../../core/sync/syncStatus.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import type { AssistantState, AnswerDraft } from "../../backend/chat/answerQuestion.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { noAssistantReason } from "./noAssistantReason.ts";
import { t } from "../../locale/t.ts";
import { rejectionMessage } from "../rejectionMessage.ts";

/** After so long without a word, nobody is writing an answer any more. */
const SILENT_MS = 60_000;

interface Props {
  turn: EpisodeDoc;
  writing: AnswerDraft | undefined;
  assistant: AssistantState | undefined;
  kind: SyncKind | undefined;
  isLast: boolean;
}

export function AnswerStatus({ turn, writing, assistant, kind, isLast }: Props) {
  if (writing) return null;
  if (turn.syncError) return <Alert color="orange">{rejectionMessage(turn.syncError)}</Alert>;
  const kept = assistant?.keptAnswers[turn.id];
  if (kept !== undefined) return <Said text={`${t("chat.kept")} ${kept}`} />;
  if (turn.status === "failed")
    return <Alert color="red">{t(turn.aiResponse.trim() ? "chat.cutOff" : "chat.noAnswer")}</Alert>;
  if (turn.status === "stopped")
    return <Said text={t(turn.aiResponse.trim() ? "chat.stoppedPartial" : "chat.stopped")} />;
  if (turn.status === "streaming" || (turn.status === "queued" && !turn.model))
    return <Unfinished turn={turn} />;
  if (turn.model !== QUOTES) return null;
  return <Quoted turn={turn} assistant={assistant} kind={kind} isLast={isLast} />;
}

function Said({ text }: { text: string }) {
  return (
    <Text size="sm" c="dimmed" mt="xs">
      {text}
    </Text>
  );
}

function Unfinished({ turn }: { turn: EpisodeDoc }) {
  const [silent, setSilent] = useState(false);
  useEffect(() => {
    const left = Date.parse(turn.updatedAt) + SILENT_MS - Date.now();
    const timer = setTimeout(() => setSilent(true), Math.max(left, 0));
    return () => clearTimeout(timer);
  }, [turn.updatedAt]);
  if (!silent) return <Said text={t("chat.elsewhere")} />;
  return <Alert color="orange">{t(turn.aiResponse ? "chat.interrupted" : "chat.unanswered")}</Alert>;
}

/** The latest quotations say whether an assistant can be asked now; all offer to ask it later. */
function Quoted({ turn, assistant, kind, isLast }: Omit<Props, "writing">) {
  const { api } = useAccountApi();
  const waits = assistant?.deferred.includes(turn.id) ?? false;
  const available = assistant?.assistant?.available;
  const reason = isLast ? noAssistantReason(available, kind) : "";
  const said =
    `${t(turn.citations.length > 0 ? "chat.notAnsweredQuoted" : "chat.notAnswered")} ${reason}`.trim();
  if (!available) return <Said text={said} />;
  return (
    <>
      <Said text={waits ? t("chat.askLaterOn") : said} />
      <Button
        size="compact-sm"
        variant="subtle"
        px={0}
        onClick={() => void api.deferQuestion(turn.id, !waits)}
      >
        {waits ? t("chat.askLaterOff") : t("chat.askLater")}
      </Button>
    </>
  );
}
