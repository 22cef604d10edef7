/** A statement by hand: a new one, or other words for one. */

import { Paper, Textarea } from "@mantine/core";
import { useState } from "react";
import { Form } from "../components/Form.tsx";
import type { MemoryPlace } from "../../backend/memory/timeline.ts";
import { ScopeSelect } from "../components/ScopeSelect.tsx";
import { t } from "../../locale/t.ts";

interface Props {
  text?: string;
  where: MemoryPlace;
  /** Whether its place is asked for. */
  choose?: boolean;
  onSave: (text: string, where: MemoryPlace) => void;
  onCancel: () => void;
}

export function StatementForm({ text, where, choose = false, onSave, onCancel }: Props) {
  const [chosen, setChosen] = useState(where);

  function save(given: string) {
    if (given) onSave(given, chosen);
  }

  return (
    <Paper withBorder p="sm">
      <Form onSave={(given) => save(given("text"))} onCancel={onCancel}>
        <Textarea
          name="text"
          label={t("memory.memory")}
          defaultValue={text}
          maxLength={10_000}
          dir="auto"
          autosize
          autoFocus
          required
        />
        {choose && <ScopeSelect label={t("memory.appliesTo")} value={chosen} onChange={setChosen} />}
      </Form>
    </Paper>
  );
}
