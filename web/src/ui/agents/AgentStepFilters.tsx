/** What of all that agents did is shown. */

import { Checkbox, Group, NativeSelect, Stack, TextInput } from "@mantine/core";
import { KINDS, type Wanted } from "../../core/agents/observations.ts";
import type { AgentSession } from "../../backend/memory/observations.ts";
import { agents as words } from "../words/agents.ts";

interface Props {
  wanted: Wanted;
  sessions: readonly AgentSession[];
  onChange: (change: Partial<Wanted>) => void;
}

export function AgentStepFilters({
  wanted: { words: query, kind, agentSession, pinned },
  sessions,
  onChange,
}: Props) {
  return (
    <Stack component="fieldset" gap="xs" m={0} p={0} bd="none" miw={0} aria-label={words.filters}>
      <TextInput
        type="search"
        label={words.search}
        value={query}
        onChange={(event) => onChange({ words: event.currentTarget.value })}
      />
      <Group gap="xs" align="end">
        <NativeSelect
          label={words.kind}
          flex="1 1 9rem"
          value={kind}
          onChange={(event) => onChange({ kind: event.currentTarget.value as Wanted["kind"] })}
          data={[
            { value: "", label: words.allKinds },
            ...KINDS.map((value) => ({ value, label: words.kinds[value] })),
          ]}
        />
        <NativeSelect
          label={words.session}
          flex="2 1 14rem"
          value={agentSession}
          onChange={(event) => onChange({ agentSession: event.currentTarget.value })}
          data={[
            { value: "", label: words.allSessions },
            ...sessions.map(({ agentSession, firstAt, observations }) => ({
              value: agentSession,
              label: words.oneSession(firstAt, observations),
            })),
          ]}
        />
      </Group>
      <Checkbox
        label={words.pinnedOnly}
        py={12}
        checked={pinned}
        onChange={(event) => onChange({ pinned: event.currentTarget.checked })}
      />
    </Stack>
  );
}
