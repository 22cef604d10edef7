import { Textarea } from "@mantine/core";
import type { EntityDoc } from "../../core/schema/rows.ts";
import { Form } from "../components/Form.tsx";
import { afterSaving } from "../notify.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

interface Props {
  entity: EntityDoc;
  onDone: () => void;
}

/** Edit the notes about an entity. */
export function NotesForm({ entity: { id, name, notes }, onDone }: Props) {
  const { api } = useAccountApi();
  const save = (notes: string) => void afterSaving(api.memory.editEntityNotes(id, notes), onDone);

  return (
    <Form small onSave={(valueOf) => save(valueOf("notes"))} onCancel={onDone}>
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
