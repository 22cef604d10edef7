import { Stack, Title } from "@mantine/core";
import { groupBy } from "../../lib/groupBy.ts";
import type { Observation } from "../../core/agents/observations.ts";
import { PlainList } from "../components/PlainList.tsx";
import { AgentStep } from "./AgentStep.tsx";
import { date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

interface Props {
  steps: readonly Observation[];
  byDay: boolean;
  onPin: (step: Observation) => void;
  onDelete: (step: Observation) => void;
}

/** Show the steps of agents, grouped by day if `byDay`. Otherwise show one list in the given order. */
export function AgentStepList({ steps, byDay, ...actions }: Props) {
  if (!byDay) return <List steps={steps} showDate {...actions} />;
  return [...groupBy(steps, ({ createdAt }) => date(createdAt))].map(([day, steps]) => (
    <Stack key={day} gap="xs">
      <Title order={4} size="h6" c="dimmed">
        {day}
      </Title>
      <List steps={steps} showDate={false} label={day} {...actions} />
    </Stack>
  ));
}

interface ListProps extends Omit<Props, "byDay"> {
  showDate: boolean;
  label?: string;
}

function List({ steps, showDate, label = t("agents.title"), onPin, onDelete }: ListProps) {
  return (
    <PlainList aria-label={label}>
      {steps.map((step) => (
        <AgentStep
          key={step.id}
          step={step}
          showDate={showDate}
          onPin={() => onPin(step)}
          onDelete={() => onDelete(step)}
        />
      ))}
    </PlainList>
  );
}
