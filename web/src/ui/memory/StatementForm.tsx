/** A statement by hand: a new one, or other words for one. */

import { Button, Group, Paper, Stack, Textarea } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { WhereSelect, type Where } from "../WhereSelect.tsx";
import { memory as words } from "../words/memory.ts";

interface Props {
  text?: string;
  where: Where;
  /** Whether its place is asked for. */
  choose?: boolean;
  onSave: (text: string, where: Where) => void;
  onCancel: () => void;
}

export function StatementForm({ text, where, choose = false, onSave, onCancel }: Props) {
  const [chosen, setChosen] = useState(where);

  function save(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const given = String(new FormData(event.currentTarget).get("text")).trim();
    if (given) onSave(given, chosen);
  }

  return (
    <Paper withBorder p="sm">
      <form onSubmit={save} onKeyDown={({ key }) => key === "Escape" && onCancel()}>
        <Stack gap="sm">
          <Textarea
            name="text"
            label={words.statement}
            defaultValue={text}
            maxLength={10_000}
            dir="auto"
            autosize
            autoFocus
            required
          />
          {choose && <WhereSelect label={words.statementWhere} value={chosen} onChange={setChosen} />}
          <Group gap="xs">
            <Button type="submit">{words.save}</Button>
            <Button variant="default" onClick={onCancel}>
              {words.cancel}
            </Button>
          </Group>
        </Stack>
      </form>
    </Paper>
  );
}
