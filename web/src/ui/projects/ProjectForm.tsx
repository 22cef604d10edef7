import { Paper, Textarea, TextInput } from "@mantine/core";
import type { ProjectDoc } from "../../core/schema/rows.ts";
import { Form } from "../components/Form.tsx";
import { t } from "../../locale/t.ts";

interface Props {
  project?: ProjectDoc;
  onSave: (name: string, description: string) => void;
  onCancel: () => void;
}

/** Show a form to add or edit a project. */
export function ProjectForm({ project, onSave, onCancel }: Props) {
  return (
    <Paper withBorder p="md">
      <Form
        onSave={(valueOf) => onSave(valueOf("name"), valueOf("description"))}
        onCancel={onCancel}
        {...(project ? {} : { saveLabel: t("projects.create") })}
      >
        <TextInput
          name="name"
          label={t("projects.name")}
          defaultValue={project?.name}
          maxLength={255}
          pattern=".*\S.*"
          dir="auto"
          autoFocus
          required
        />
        <Textarea
          name="description"
          label={t("projects.description")}
          defaultValue={project?.description}
          maxLength={10_000}
          dir="auto"
          autosize
        />
      </Form>
    </Paper>
  );
}
