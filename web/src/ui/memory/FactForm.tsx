/** A fact by hand: a new one, or another wording of one. */

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

export function FactForm({ fact, onSave, onCancel }: Props) {
  const current = `${fact?.key ?? ""}: ${fact?.value ?? ""}`;
  const given = JSON.stringify([fact?.key ?? "", fact?.value ?? "", current]);
  const [draft, setDraft] = useDraft(draftOf(fact?.id), given);
  const [key, value, begunFrom] = JSON.parse(draft) as [string, string, string];
  const write = (key: string, value: string) => setDraft(JSON.stringify([key, value, begunFrom]));
  return (
    <Paper withBorder p="sm" data-draft>
      <Form onSave={(given) => onSave(given("key"), given("value"))} onCancel={onCancel}>
        <TextInput
          name="key"
          label={t("memory.factName")}
          description={t("memory.factNameHint")}
          value={key}
          onChange={(event) => write(event.currentTarget.value, value)}
          maxLength={255}
          pattern=".*\S.*"
          autoFocus={draft === given} // else nobody has just opened it
          required
        />
        <Textarea
          name="value"
          label={t("memory.factValue")}
          value={value}
          onChange={(event) => write(key, event.currentTarget.value)}
          maxLength={10_000}
          autosize
          required
        />
        {fact && begunFrom !== current && <Text size="sm">{t("memory.factChanged", { fact: current })}</Text>}
      </Form>
    </Paper>
  );
}
