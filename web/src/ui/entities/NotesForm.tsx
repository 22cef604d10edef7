/** What is noted of a person, place or thing, by hand. */

import { Textarea } from "@mantine/core";
import type { EntityDoc } from "../../core/schema/rows.ts";
import { Form } from "../components/Form.tsx";
import { stored } from "../notify.ts";
import { useMemoryApi } from "../../client/useMemoryApi.ts";
import { t } from "../../locale/t.ts";

interface Props {
  entity: EntityDoc;
  onDone: () => void;
}

export function NotesForm({ entity: { id, name, notes }, onDone }: Props) {
  const memory = useMemoryApi();
  const save = (given: string) =>
    void stored(
      memory((desk) => desk.noteEntity(id, given)),
      onDone,
    );

  return (
    <Form small onSave={(given) => save(given("notes"))} onCancel={onDone}>
      <Textarea
        name="notes"
        label={t("entities.notes", { name })}
        defaultValue={notes}
        maxLength={10_000}
        dir="auto"
        autosize
        autoFocus
      />
    </Form>
  );
}
