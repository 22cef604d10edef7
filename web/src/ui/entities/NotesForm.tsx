/** What is noted of a person, place or thing, by hand. */

import { Button, Group, Stack, Textarea } from "@mantine/core";
import type { FormEvent } from "react";
import type { EntityDoc } from "../../model/rows.ts";
import { stored } from "../tell.ts";
import { useMemoryDesk } from "../useMemoryDesk.ts";
import { entities as words } from "../words/entities.ts";

export function NotesForm({
  entity: { id, name, notes },
  onDone,
}: {
  entity: EntityDoc;
  onDone: () => void;
}) {
  const memory = useMemoryDesk();

  function save(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const given = String(new FormData(event.currentTarget).get("notes")).trim();
    void stored(
      memory((desk) => desk.noteEntity(id, given)),
      onDone,
    );
  }

  return (
    <form onSubmit={save} onKeyDown={({ key }) => key === "Escape" && onDone()}>
      <Stack gap="xs">
        <Textarea
          name="notes"
          label={words.notes(name)}
          defaultValue={notes}
          maxLength={10_000}
          dir="auto"
          autosize
          autoFocus
        />
        <Group gap="xs">
          <Button size="compact-md" type="submit">
            {words.save}
          </Button>
          <Button size="compact-md" variant="default" onClick={onDone}>
            {words.cancel}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
