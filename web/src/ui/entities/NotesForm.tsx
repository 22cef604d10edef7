/** What is noted of a person, place or thing, by hand. */

import { Textarea } from "@mantine/core";
import type { EntityDoc } from "../../core/schema/rows.ts";
import { Form } from "../components/Form.tsx";
import { stored } from "../notify.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

interface Props {
  entity: EntityDoc;
  onDone: () => void;
}

export function NotesForm({ entity: { id, name, notes }, onDone }: Props) {
  const { api } = useAccountApi();
  const save = (given: string) => void stored(api.memory.editEntityNotes(id, given), onDone);

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
