/** One thing an agent did: its kind and what it was about; it opens to the whole text. */

import { Button, Collapse, Group, Paper, Text, UnstyledButton } from "@mantine/core";
import { IconEyeOff, IconPinFilled } from "@tabler/icons-react";
import { useId, useState } from "react";
import { hasMore, headOf, type Observation } from "../../core/agents/observations.ts";
import { Chevron } from "../components/Chevron.tsx";
import classes from "./agents.module.css";
import { KindIcon } from "./KindIcon.tsx";
import { date, dateTime, time } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

interface Props {
  step: Observation;
  /** Whether its day is named. */
  dated: boolean;
  onPin: () => void;
  onDelete: () => void;
}

/** From so many characters on a head may be cut off where the screen is narrow. */
const LONG = 60;
/** What is told in sentences; the rest is code, or names of files. */
const PROSE: readonly Observation["kind"][] = ["prompt", "decision", "session"];

export function AgentStep({ step, dated, onPin, onDelete }: Props) {
  const [opened, setOpened] = useState(false);
  const textId = useId();
  const head = headOf(step) || t("agents.noDetails");
  const font = PROSE.includes(step.kind) ? {} : { ff: "monospace" };
  const title = (
    <Text span {...font} size="sm" dir="auto" className={classes["head"]!} data-whole={opened || undefined}>
      {head}
    </Text>
  );
  return (
    <Paper component="li" withBorder p="sm" data-step={step.id}>
      <Group justify="space-between" gap="xs">
        <About step={step} dated={dated} />
        <Actions head={head} pinned={step.pinned} onPin={onPin} onDelete={onDelete} />
      </Group>
      {hasMore(step) || head.length > LONG ? (
        <UnstyledButton
          className={classes["opener"]!}
          aria-expanded={opened}
          aria-controls={textId}
          onClick={() => setOpened(!opened)}
        >
          <Chevron />
          {title}
        </UnstyledButton>
      ) : (
        <div className={classes["line"]!}>{title}</div>
      )}
      <Collapse expanded={opened} id={textId}>
        {hasMore(step) && (
          <Text component="pre" {...font} dir="auto" className={classes["text"]!}>
            {step.content}
          </Text>
        )}
      </Collapse>
    </Paper>
  );
}

interface ActionsProps extends Pick<Props, "onPin" | "onDelete"> {
  head: string;
  pinned: boolean;
}

function Actions({ head, pinned, onPin, onDelete }: ActionsProps) {
  return (
    <Group gap={4} ms="auto" me={-8} wrap="nowrap">
      <Action verb={pinned ? t("common.unpin") : t("common.pin")} head={head} onClick={onPin} />
      <Action verb={t("common.delete")} head={head} onClick={onDelete} />
    </Group>
  );
}

function Action({ verb, head, onClick }: { verb: string; head: string; onClick: () => void }) {
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      aria-label={t("common.actionOn", { action: verb, name: head })}
      onClick={onClick}
    >
      {verb}
    </Button>
  );
}

function About({ step, dated }: Pick<Props, "step" | "dated">) {
  const { kind, createdAt, updatedAt, tool, count, redactions, pinned } = step;
  const at = time(createdAt);
  const said = [
    dated ? `${date(createdAt)}, ${at}` : at,
    tool,
    count > 1 && t("agents.times", { n: count }),
    count > 1 && updatedAt !== createdAt && t("agents.last", { when: dateTime(updatedAt) }),
  ];
  return (
    <Group gap="xs" miw={0} flex="1 1 12rem">
      <KindIcon kind={kind} />
      <Text span size="sm" c="dimmed">
        {said.filter(Boolean).join(" · ")}
      </Text>
      {redactions > 0 && <Mark icon={IconEyeOff} text={t("agents.hidden", { n: redactions })} />}
      {pinned && <Mark icon={IconPinFilled} text={t("agents.pinned")} />}
    </Group>
  );
}

function Mark({ icon: Icon, text }: { icon: typeof IconEyeOff; text: string }) {
  return (
    <Group component="span" gap={4} wrap="nowrap">
      <Icon size={14} aria-hidden />
      <Text span size="sm">
        {text}
      </Text>
    </Group>
  );
}
