import { Checkbox, Group, NativeSelect, Stack, TextInput } from "@mantine/core";
import { KINDS, type ObservationFilter } from "../../core/agents/observations.ts";
import type { AgentSession } from "../../backend/api.ts";
import { dateTime } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

interface Props {
  filters: ObservationFilter;
  sessions: readonly AgentSession[];
  onChange: (change: Partial<ObservationFilter>) => void;
}

/** Show the search field and the filters for the steps of agents. */
export function AgentStepFilters({ filters, sessions, onChange }: Props) {
  const { words, kind, agentSession, pinned } = filters;
  return (
    <Stack component="fieldset" gap="xs" m={0} p={0} bd="none" miw={0} aria-label={t("agents.filters")}>
      <TextInput
        type="search"
        label={t("agents.search")}
        value={words}
        onChange={(event) => onChange({ words: event.currentTarget.value })}
      />
      <Group gap="xs" align="end">
        <NativeSelect
          label={t("agents.kind")}
          flex="1 1 9rem"
          value={kind}
          onChange={(event) => onChange({ kind: event.currentTarget.value as ObservationFilter["kind"] })}
          data={[
            { value: "", label: t("agents.allKinds") },
            ...KINDS.map((value) => ({ value, label: t(`agents.kind.${value}`) })),
          ]}
        />
        <NativeSelect
          label={t("agents.session")}
          flex="2 1 14rem"
          value={agentSession}
          onChange={(event) => onChange({ agentSession: event.currentTarget.value })}
          data={[
            { value: "", label: t("agents.allSessions") },
            ...sessions.map(({ agentSession, firstAt, observations }) => ({
              value: agentSession,
              label: t("agents.sessionOption", { when: dateTime(firstAt), n: observations }),
            })),
          ]}
        />
      </Group>
      <Checkbox
        label={t("agents.pinnedOnly")}
        py={12}
        checked={pinned}
        onChange={(event) => onChange({ pinned: event.currentTarget.checked })}
      />
    </Stack>
  );
}
