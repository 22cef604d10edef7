import { Button, Collapse, Group, Paper, Text, UnstyledButton } from "@mantine/core";
import { IconEyeOff, IconPinFilled } from "@tabler/icons-react";
import { useId, useState } from "react";
import { hasMore, headingOf, type Observation } from "../../core/agents/observations.ts";
import { Chevron } from "../components/Chevron.tsx";
import classes from "./agents.module.css";
import { KindIcon } from "./KindIcon.tsx";
import { dateTime, time } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

interface Props {
  step: Observation;
  showDate: boolean;
  onPin: () => void;
  onDelete: () => void;
}

/** Length in characters above which a narrow screen may truncate a title, so that the step must be expandable. */
const LONG = 60;
/** Kinds of steps whose text is prose. The texts of all other kinds are code or file names, in a monospaced font. */
const PROSE: readonly Observation["kind"][] = ["prompt", "decision", "session"];

/** Show a step of an agent. A step with more text than its title can be expanded. */
export function AgentStep({ step, showDate, onPin, onDelete }: Props) {
  const [opened, setOpened] = useState(false);
  const textId = useId();
  const title = headingOf(step) || t("agents.noDetails");
  const font = PROSE.includes(step.kind) ? {} : { ff: "monospace" };
  const titleText = (
    <Text
      span
      {...font}
      size="sm"
      dir="auto"
      className={classes["title"]!}
      data-expanded={opened || undefined}
    >
      {title}
    </Text>
  );
  return (
    <Paper component="li" withBorder p="sm" data-step={step.id}>
      <Group justify="space-between" gap="xs">
        <Details step={step} showDate={showDate} />
        <Actions title={title} pinned={step.pinned} onPin={onPin} onDelete={onDelete} />
      </Group>
      {hasMore(step) || title.length > LONG ? (
        <UnstyledButton
          className={classes["opener"]!}
          aria-expanded={opened}
          aria-controls={textId}
          onClick={() => setOpened(!opened)}
        >
          <Chevron />
          {titleText}
        </UnstyledButton>
      ) : (
        <div className={classes["line"]!}>{titleText}</div>
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
  title: string;
  pinned: boolean;
}

function Actions({ title, pinned, onPin, onDelete }: ActionsProps) {
  return (
    <Group gap={4} ms="auto" me={-8} wrap="nowrap">
      <Action verb={pinned ? t("common.unpin") : t("common.pin")} title={title} onClick={onPin} />
      <Action verb={t("common.delete")} title={title} onClick={onDelete} />
    </Group>
  );
}

function Action({ verb, title, onClick }: { verb: string; title: string; onClick: () => void }) {
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      aria-label={t("common.actionOn", { action: verb, name: title })}
      onClick={onClick}
    >
      {verb}
    </Button>
  );
}

function Details({ step, showDate }: Pick<Props, "step" | "showDate">) {
  const { kind, createdAt, updatedAt, tool, count, redactions, pinned } = step;
  const details = [
    showDate ? dateTime(createdAt) : time(createdAt),
    tool,
    count > 1 && t("agents.times", { n: count }),
    count > 1 && updatedAt !== createdAt && t("agents.last", { when: dateTime(updatedAt) }),
  ];
  return (
    <Group gap="xs" miw={0} flex="1 1 12rem">
      <KindIcon kind={kind} />
      <Text span size="sm" c="dimmed">
        {details.filter(Boolean).join(" · ")}
      </Text>
      {redactions > 0 && <Note icon={IconEyeOff} text={t("agents.hidden", { n: redactions })} />}
      {pinned && <Note icon={IconPinFilled} text={t("agents.pinned")} />}
    </Group>
  );
}

function Note({ icon: Icon, text }: { icon: typeof IconEyeOff; text: string }) {
  return (
    <Group component="span" gap={4} wrap="nowrap">
      <Icon size={14} aria-hidden />
      <Text span size="sm">
        {text}
      </Text>
    </Group>
  );
}
