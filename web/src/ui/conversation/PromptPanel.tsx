import { Blockquote, Button, Code, CopyButton, Progress, Skeleton, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { QUOTES } from "../../core/chat/citation.ts";
import { stripMarkdownOf } from "../../core/text/stripMarkdown.ts";
import type { PromptPreview, PromptSummary } from "../../backend/api.ts";
import { SidePanel } from "../components/SidePanel.tsx";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { sourceName } from "./sourceName.ts";
import { errorMessage } from "../errorMessage.ts";
import { t } from "../../locale/t.ts";
import { percent } from "../../locale/format.ts";
import { leftOutText } from "./leftOutText.ts";

const PARTS = ["system", "state", "volatile", "rag"] as const;

/** Show what the prompt of an answer contained, how much of each budget it used, and what was left out. */
export default function PromptPanel({ episodeId, onClose }: { episodeId: string; onClose(): void }) {
  const { api } = useAccountApi();
  const [summary, setSummary] = useState<PromptSummary | null>();
  useEffect(() => void api.promptSummary(episodeId).then(setSummary), [api, episodeId]);
  const turn = useRows("episodes", { selector: { id: episodeId } })?.[0];
  const isQuotes = turn?.model === QUOTES;
  return (
    <SidePanel
      title={isQuotes ? t("chat.promptPreviewTitle") : t("chat.promptTitle")}
      closeLabel={t("common.close")}
      onClose={onClose}
    >
      {isQuotes && <Preview episodeId={episodeId} />}
      {turn && !isQuotes && summary === null && <Text>{t("prompt.unavailable")}</Text>}
      {summary && !isQuotes && <Summary summary={summary} passages={summary.citations} />}
    </SidePanel>
  );
}

/**
 * Show the prompt that an assistant would have received for a question that was answered with quotations only. The user
 * can copy this prompt into another program, such as a chat with a different assistant.
 */
function Preview({ episodeId }: { episodeId: string }) {
  const { api } = useAccountApi();
  const [preview, setPreview] = useState<PromptPreview | null>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    void api.previewPrompt(episodeId).then(setPreview, (error: unknown) => setProblem(errorMessage(error)));
  }, [api, episodeId]);
  if (problem) return <Text role="alert">{problem}</Text>;
  if (preview === undefined) return <Skeleton h={240} aria-label={t("prompt.preparing")} role="status" />;
  if (preview === null) return <Text>{t("prompt.modelMissing")}</Text>;
  return (
    <Stack>
      <Text size="sm">{t("prompt.previewHint")}</Text>
      <Summary summary={preview} />
      <CopyButton value={preview.prompt}>
        {({ copied, copy }) => (
          <Button variant="light" me="auto" onClick={copy}>
            {copied ? t("common.copied") : t("prompt.copyAll")}
          </Button>
        )}
      </CopyButton>
      <Code block dir="auto" style={{ whiteSpace: "pre-wrap" }}>
        {preview.prompt}
      </Code>
    </Stack>
  );
}

interface SummaryProps {
  summary: Pick<PromptSummary, "tokens" | "budget" | "dropped">;
  passages?: PromptSummary["citations"];
}

function Summary({ summary: { tokens, budget, dropped }, passages = [] }: SummaryProps) {
  return (
    <Stack>
      {PARTS.map((part) => {
        const share = budget[part] ? tokens[part] / budget[part] : 0;
        const label = t("prompt.used", { part: t(`prompt.part.${part}`), share: percent(share) });
        return (
          <div key={part}>
            <Text size="sm">{label}</Text>
            <Progress value={100 * share} aria-label={label} />
          </div>
        );
      })}
      <Text size="sm" c="dimmed">
        {leftOutText(dropped)} {t("prompt.hint")}
      </Text>
      {passages.length > 0 && <Text fw={600}>{t("prompt.passagesTitle")}</Text>}
      {passages.map((passage) => (
        <Blockquote
          key={`${passage.documentId}.${passage.block}/${passage.chunkIndex}`}
          p="sm"
          cite={sourceName(passage)}
          styles={{ root: { fontSize: "var(--mantine-font-size-sm)" } }}
        >
          {stripMarkdownOf(passage.filename, passage.text)}
        </Blockquote>
      ))}
    </Stack>
  );
}
