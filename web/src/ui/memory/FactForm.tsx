/** A fact by hand: a new one, or another wording of one. */

import { Paper, Textarea, TextInput } from "@mantine/core";
import type { FactDoc } from "../../model/rows.ts";
import { Form } from "../Form.tsx";
import { memory as words } from "../words/memory.ts";

interface Props {
  fact?: FactDoc;
  onSave: (key: string, value: string) => void;
  onCancel: () => void;
}

export function FactForm({ fact, onSave, onCancel }: Props) {
  return (
    <Paper withBorder p="sm">
      <Form onSave={(given) => onSave(given("key"), given("value"))} onCancel={onCancel}>
        <TextInput
          name="key"
          label={words.key}
          description={words.keyHint}
          defaultValue={fact?.key}
          maxLength={255}
          pattern=".*\S.*"
          autoFocus
          required
        />
        <Textarea
          name="value"
          label={words.value}
          defaultValue={fact?.value}
          maxLength={10_000}
          autosize
          required
        />
      </Form>
    </Paper>
  );
}
