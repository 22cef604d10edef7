/** A fact by hand: a new one, or another wording of one. */

import { Button, Group, Paper, Stack, Textarea, TextInput } from "@mantine/core";
import type { FormEvent } from "react";
import type { FactDoc } from "../../model/rows.ts";
import { memory as words } from "../words/memory.ts";

interface Props {
  fact?: FactDoc;
  onSave: (key: string, value: string) => void;
  onCancel: () => void;
}

export function FactForm({ fact, onSave, onCancel }: Props) {
  function save(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    onSave(String(given.get("key")).trim(), String(given.get("value")).trim());
  }

  return (
    <Paper withBorder p="sm">
      <form onSubmit={save} onKeyDown={({ key }) => key === "Escape" && onCancel()}>
        <Stack gap="sm">
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
