/** What agents did, by day; what was found by words is one list, the best first. */

import { Stack, Title } from "@mantine/core";
import { grouped } from "../../lib/groupBy.ts";
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

export function AgentStepList({ steps, byDay, ...verbs }: Props) {
  if (!byDay) return <List steps={steps} dated {...verbs} />;
  return [...grouped(steps, ({ createdAt }) => date(createdAt))].map(([day, steps]) => (
    <Stack key={day} gap="xs">
      <Title order={4} size="h6" c="dimmed">
        {day}
      </Title>
      <List steps={steps} dated={false} label={day} {...verbs} />
    </Stack>
  ));
}

interface ListProps extends Omit<Props, "byDay"> {
  dated: boolean;
  label?: string;
}

function List({ steps, dated, label = t("agents.title"), onPin, onDelete }: ListProps) {
  return (
    <PlainList aria-label={label}>
      {steps.map((step) => (
        <AgentStep
          key={step.id}
          step={step}
          dated={dated}
          onPin={() => onPin(step)}
          onDelete={() => onDelete(step)}
        />
      ))}
    </PlainList>
  );
}
