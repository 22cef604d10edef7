/** For the curious: what went into the prompt of an answer, against its budgets, and what was left out. */

import { Blockquote, Button, Code, CopyButton, Progress, Skeleton, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { QUOTES } from "../../core/chat/citation.ts";
import { readableOf } from "../../core/text/stripMarkdown.ts";
import type { PromptPreview } from "../../backend/chat/prompt_context.ts";
import type { PromptSummary } from "../../backend/chat/assistantClient.ts";
import { SidePanel } from "../components/SidePanel.tsx";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { sourceName } from "./sourceName.ts";
import { said } from "../errorMessage.ts";
import { t } from "../../locale/t.ts";
import { percent } from "../../locale/format.ts";
import { leftOutText } from "./leftOutText.ts";

const PARTS = ["system", "state", "volatile", "rag"] as const;

export default function PromptPanel({ episodeId, onClose }: { episodeId: string; onClose(): void }) {
  const { api } = useAccountApi();
  const [told, setTold] = useState<PromptSummary | null>();
  useEffect(() => void api.promptSummary(episodeId).then(setTold), [api, episodeId]);
  const turn = useRows("episodes", { selector: { id: episodeId } })?.[0];
  const isQuotes = turn?.model === QUOTES;
  return (
    <SidePanel
      title={isQuotes ? t("chat.promptPreviewTitle") : t("chat.promptTitle")}
      close={t("common.close")}
      onClose={onClose}
    >
      {isQuotes && <Would episodeId={episodeId} />}
      {turn && !isQuotes && told === null && <Text>{t("prompt.gone")}</Text>}
      {told && !isQuotes && <Bars told={told} given={told.citations} />}
    </SidePanel>
  );
}

/** No assistant was asked: what one would be told, to be read, or taken to another. */
function Would({ episodeId }: { episodeId: string }) {
  const { api } = useAccountApi();
  const [made, setMade] = useState<PromptPreview | null>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    void api.previewPrompt(episodeId).then(setMade, (error: unknown) => setProblem(said(error)));
  }, [api, episodeId]);
  if (problem) return <Text role="alert">{problem}</Text>;
  if (made === undefined) return <Skeleton h={240} aria-label={t("prompt.preparing")} role="status" />;
  if (made === null) return <Text>{t("prompt.modelMissing")}</Text>;
  return (
    <Stack>
      <Text size="sm">{t("prompt.previewHint")}</Text>
      <Bars told={made} />
      <CopyButton value={made.prompt}>
        {({ copied, copy }) => (
          <Button variant="light" me="auto" onClick={copy}>
            {copied ? t("common.copied") : t("prompt.copyAll")}
          </Button>
        )}
      </CopyButton>
      <Code block dir="auto" style={{ whiteSpace: "pre-wrap" }}>
        {made.prompt}
      </Code>
    </Stack>
  );
}

interface BarsProps {
  told: Pick<PromptSummary, "tokens" | "budget" | "dropped">;
  given?: PromptSummary["citations"];
}

function Bars({ told, given: passages = [] }: BarsProps) {
  return (
    <Stack>
      {PARTS.map((part) => {
        const [used, budget] = [told.tokens[part], told.budget[part]];
        const share = percent(budget ? used / budget : 0);
        const label = t("prompt.used", { part: t(`prompt.part.${part}`), share });
        return (
          <div key={part}>
            <Text size="sm">{label}</Text>
            <Progress value={budget ? (100 * used) / budget : 0} aria-label={label} />
          </div>
        );
      })}
      <Text size="sm" c="dimmed">
        {leftOutText(told.dropped)} {t("prompt.hint")}
      </Text>
      {passages.length > 0 && <Text fw={600}>{t("prompt.passagesTitle")}</Text>}
      {passages.map((given) => (
        <Blockquote
          key={`${given.documentId}.${given.block}/${given.chunkIndex}`}
          p="sm"
          cite={sourceName(given)}
          styles={{ root: { fontSize: "var(--mantine-font-size-sm)" } }}
        >
          {readableOf(given.filename, given.text)}
        </Blockquote>
      ))}
    </Stack>
  );
}
