import { Paper, Textarea } from "@mantine/core";
import { useState } from "react";
import { Form } from "../components/Form.tsx";
import type { MemoryPlace } from "../../backend/api.ts";
import { ScopeSelect } from "../components/ScopeSelect.tsx";
import { t } from "../../locale/t.ts";

interface Props {
  text?: string;
  where: MemoryPlace;
  /** Whether the user can choose the project. */
  canChooseProject?: boolean;
  onSave: (text: string, where: MemoryPlace) => void;
  onCancel: () => void;
}

/** Show a form to add or edit a memory. */
export function StatementForm({ text, where, canChooseProject = false, onSave, onCancel }: Props) {
  const [chosen, setChosen] = useState(where);

  function save(text: string) {
    if (text) onSave(text, chosen);
  }

  return (
    <Paper withBorder p="sm">
      <Form onSave={(valueOf) => save(valueOf("text"))} onCancel={onCancel}>
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
        {canChooseProject && (
          <ScopeSelect label={t("memory.appliesTo")} value={chosen} onChange={setChosen} />
        )}
      </Form>
    </Paper>
  );
}
