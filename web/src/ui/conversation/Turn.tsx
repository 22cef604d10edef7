import { Box, Button, Group, Paper, Skeleton, Stack, Text, VisuallyHidden } from "@mantine/core";
import { memo, Suspense, useState } from "react";
import { QUOTES, type Citation } from "../../core/chat/citation.ts";
import type { SyncKind } from "../../core/sync/syncStatus.ts";
import { splitCitations } from "../../core/chat/answers.ts";
import { answerDisplayText } from "../../core/chat/answerDisplayText.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import type { AnswerDraft, AssistantState } from "../../backend/api.ts";
import { ErrorBoundary } from "../components/ErrorBoundary.tsx";
import { useAccountApi } from "../../client/backendClient.tsx";
import { AnswerActions } from "./AnswerActions.tsx";
import { EditQuestion } from "./EditQuestion.tsx";
import { AnswerStatus } from "./AnswerStatus.tsx";
import { noticeTexts } from "./noticeText.ts";
import { Sources } from "./Sources.tsx";
import { lazyComponent } from "../lazyComponent.ts";
import { list } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const Answer = lazyComponent(() => import("./Answer.tsx").then(({ Answer }) => ({ default: Answer })));

interface Props {
  turn: EpisodeDoc;
  /** The state of the answer while it is streaming to this tab. */
  writing: AnswerDraft | undefined;
  assistant: AssistantState | undefined;
  kind: SyncKind | undefined;
  isLast: boolean;
  onCitation(citation: Citation): void;
  onPrompt(episodeId: string): void;
}

/** Show a question and its answer. */
export const Turn = memo(function Turn({
  turn,
  writing,
  assistant,
  kind,
  isLast,
  onCitation,
  onPrompt,
}: Props) {
  const [editing, setEditing] = useState(false);
  const { citations } = writing ?? turn;
  const aiResponse = writing?.aiResponse ?? answerDisplayText(turn);
  const { pendingFiles, retryInS } = writing ?? { pendingFiles: [], retryInS: 0 };
  const isQuotes = !writing && turn.model === QUOTES;
  const { cited, others } = splitCitations({ aiResponse, citations, ...(isQuotes ? { model: QUOTES } : {}) });
  return (
    <Stack component="article" id={turn.id} gap="sm">
      {editing ? (
        <EditQuestion turn={turn} onDone={() => setEditing(false)} />
      ) : (
        <Paper bg="var(--mantine-primary-color-light)" px="md" py="xs" ms="auto" maw="85%">
          <VisuallyHidden component="h3">{t("chat.question")}</VisuallyHidden>
          <Text style={{ whiteSpace: "pre-wrap" }} dir="auto">
            {turn.userMessage}
          </Text>
        </Paper>
      )}
      <Box
        aria-live={isLast ? "polite" : undefined}
        aria-busy={writing !== undefined && pendingFiles.length === 0 && retryInS === 0}
      >
        <VisuallyHidden component="h3">{t("chat.answer")}</VisuallyHidden>
        {isQuotes && citations.length > 0 && (
          <Text size="sm" fw={600} c="dimmed" mb="xs">
            {t("chat.quoted")}
          </Text>
        )}
        {aiResponse ? (
          <ErrorBoundary resetKey={aiResponse} fallback={<PlainAnswer text={aiResponse} />}>
            <Suspense fallback={<PlainAnswer text={aiResponse} />}>
              <Answer text={aiResponse} citations={citations} isQuotes={isQuotes} onCitation={onCitation} />
            </Suspense>
          </ErrorBoundary>
        ) : (
          writing && <Thinking turn={turn} pendingFiles={pendingFiles} retryInS={retryInS} />
        )}
        {!writing && noticeTexts(turn.notices).map((text) => <Text key={text}>{text}</Text>)}
        {!isQuotes && <Sources label={t("chat.sources")} citations={cited} onCitation={onCitation} />}
        {!isQuotes && (
          <Sources
            label={t(cited.length > 0 ? "chat.alsoRead" : "chat.read")}
            citations={others}
            onCitation={onCitation}
          />
        )}
        <AnswerStatus turn={turn} writing={writing} assistant={assistant} kind={kind} isLast={isLast} />
        {!writing && (
          <Group mt={4} display={editing ? "none" : "flex"} /* not removed: it gets the focus back */>
            <AnswerActions
              turn={turn}
              isLast={isLast}
              onEdit={() => setEditing(true)}
              onPrompt={() => onPrompt(turn.id)}
            />
          </Group>
        )}
      </Box>
    </Stack>
  );
});

/** Show an answer as plain text. */
function PlainAnswer({ text }: { text: string }) {
  return <Text style={{ whiteSpace: "pre-wrap" }}>{text}</Text>;
}

function Thinking({
  turn,
  pendingFiles,
  retryInS,
}: Pick<AnswerDraft, "pendingFiles" | "retryInS"> & { turn: EpisodeDoc }) {
  const { api } = useAccountApi();
  const progress = retryInS > 0 ? t("chat.retryAfter", { n: retryInS }) : t("chat.thinking");
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed">
        {pendingFiles.length > 0 ? t("chat.waitingForFiles", { names: list(pendingFiles) }) : progress}
      </Text>
      {pendingFiles.length > 0 && (
        <Button variant="light" size="sm" me="auto" onClick={() => void api.answerWithoutWaiting(turn.id)}>
          {t("chat.answerNow", { n: pendingFiles.length })}
        </Button>
      )}
      <Skeleton h={12} w="80%" />
      <Skeleton h={12} w="60%" />
    </Stack>
  );
}
