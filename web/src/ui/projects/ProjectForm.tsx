/** A project by hand: a new one, or another name for one. */

import { Button, Group, Paper, Stack, Textarea, TextInput } from "@mantine/core";
import type { FormEvent } from "react";
import type { ProjectDoc } from "../../model/rows.ts";
import { projects as words } from "../words/projects.ts";

interface Props {
  project?: ProjectDoc;
  onSave: (name: string, description: string) => void;
  onCancel: () => void;
}

export function ProjectForm({ project, onSave, onCancel }: Props) {
  function save(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    onSave(String(given.get("name")).trim(), String(given.get("description")).trim());
  }

  return (
    <Paper withBorder p="md">
      <form onSubmit={save} onKeyDown={({ key }) => key === "Escape" && onCancel()}>
        <Stack gap="sm">
          <TextInput
            name="name"
            label={words.name}
            defaultValue={project?.name}
            maxLength={255}
            pattern=".*\S.*"
            dir="auto"
            autoFocus
            required
          />
          <Textarea
            name="description"
            label={words.description}
            defaultValue={project?.description}
            maxLength={10_000}
            dir="auto"
            autosize
          />
          <Group gap="xs">
            <Button type="submit">{project ? words.save : words.create}</Button>
            <Button variant="default" onClick={onCancel}>
              {words.cancel}
            </Button>
          </Group>
        </Stack>
      </form>
    </Paper>
  );
}
