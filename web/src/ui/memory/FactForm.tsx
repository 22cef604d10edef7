import { Paper, Text, Textarea, TextInput } from "@mantine/core";
import type { FactDoc } from "../../core/schema/rows.ts";
import { useDraft } from "../drafts.ts";
import { Form } from "../components/Form.tsx";
import { draftOf } from "./useFactForm.ts";
import { t } from "../../locale/t.ts";

interface Props {
  fact?: FactDoc;
  onSave: (key: string, value: string) => void;
  onCancel: () => void;
}

/**
 * Show a form to add or edit a fact. Unsaved text is kept as a draft. The draft includes the fact's text from the time
 * when the user started editing, so that a later change of the fact can be shown.
 */
export function FactForm({ fact, onSave, onCancel }: Props) {
  const current = `${fact?.key ?? ""}: ${fact?.value ?? ""}`;
  const initial = JSON.stringify([fact?.key ?? "", fact?.value ?? "", current]);
  const [draft, setDraft] = useDraft(draftOf(fact?.id), initial);
  const [key, value, original] = JSON.parse(draft) as [string, string, string];
  const edit = (key: string, value: string) => setDraft(JSON.stringify([key, value, original]));
  return (
    <Paper withBorder p="sm" data-draft>
      <Form onSave={(valueOf) => onSave(valueOf("key"), valueOf("value"))} onCancel={onCancel}>
        <TextInput
          name="key"
          label={t("memory.factName")}
          description={t("memory.factNameHint")}
          value={key}
          onChange={(event) => edit(event.currentTarget.value, value)}
          maxLength={255}
          pattern=".*\S.*"
          autoFocus={draft === initial} // not with a draft: such a form opens automatically and must not take the focus
          required
        />
        <Textarea
          name="value"
          label={t("memory.factValue")}
          value={value}
          onChange={(event) => edit(key, event.currentTarget.value)}
          maxLength={10_000}
          autosize
          required
        />
        {fact && original !== current && <Text size="sm">{t("memory.factChanged", { fact: current })}</Text>}
      </Form>
    </Paper>
  );
}
