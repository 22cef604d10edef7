import { ActionIcon, CopyButton, Group } from "@mantine/core";
import { IconAdjustments, IconCheck, IconCopy, IconPencil, IconRefresh } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { QUOTES } from "../../core/chat/citation.ts";
import { answerDisplayText } from "../../core/chat/answerDisplayText.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";
import { noticeTexts } from "./noticeText.ts";

interface Props {
  turn: EpisodeDoc;
  isLast: boolean;
  onEdit(): void;
  onPrompt(): void;
}

/** Show the buttons below an answer. */
export function AnswerActions({ turn, isLast, onEdit, onPrompt }: Props) {
  const { api } = useAccountApi();
  return (
    <Group gap={2} role="group" aria-label={t("chat.answerActions")}>
      <CopyButton
        value={[answerDisplayText(turn), ...noticeTexts(turn.notices)].filter(Boolean).join("\n\n")}
      >
        {({ copied, copy }) => (
          <Action label={t(copied ? "common.copied" : "common.copy")} onClick={copy}>
            {copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
          </Action>
        )}
      </CopyButton>
      {isLast && (
        <Action label={t("chat.regenerate")} onClick={() => void api.regenerateAnswer(turn.id)}>
          <IconRefresh size={16} />
        </Action>
      )}
      {isLast && (
        <Action label={t("chat.edit")} onClick={onEdit}>
          <IconPencil size={16} />
        </Action>
      )}
      <Action
        label={t(turn.model === QUOTES ? "chat.promptPreviewTitle" : "chat.promptTitle")}
        onClick={onPrompt}
      >
        <IconAdjustments size={16} />
      </Action>
    </Group>
  );
}

function Action({ label, onClick, children }: { label: string; onClick(): void; children: ReactNode }) {
  return (
    <ActionIcon variant="subtle" color="gray" size="lg" aria-label={label} title={label} onClick={onClick}>
      {children}
    </ActionIcon>
  );
}
