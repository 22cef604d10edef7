import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "wouter";
import { newId } from "../../core/schema/uuid7.ts";
import type { ProjectDoc } from "../../core/schema/rows.ts";
import { afterSaving } from "../notify.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { DeleteProject } from "./DeleteProject.tsx";
import { ProjectForm } from "./ProjectForm.tsx";
import { t } from "../../locale/t.ts";

/** Show the name, description and actions of a project. If `brief`, show only the name. */
export function ProjectHeader({ project, brief }: { project: ProjectDoc; brief: boolean }) {
  const { api } = useAccountApi();
  const [mode, setMode] = useState<"viewing" | "editing" | "deleting">("viewing");
  // Only for the link to a new chat, whose row is created with its first message.
  const [newSessionId] = useState(newId);
  const { id, name, description } = project;
  const close = () => setMode("viewing");

  const save = (name: string, description: string) =>
    void afterSaving(api.memory.changeProject(id, { name, description }), close);

  const title = (
    <Title order={2} dir="auto">
      {name}
    </Title>
  );
  if (brief) return title;
  if (mode === "editing") return <ProjectForm project={project} onSave={save} onCancel={close} />;
  return (
    <Stack gap="xs">
      {title}
      {description && (
        <Text dir="auto" style={{ whiteSpace: "pre-wrap" }}>
          {description}
        </Text>
      )}
      <Group gap="xs">
        <Button
          component={Link}
          href={`/s/${newSessionId}?project=${encodeURIComponent(id)}`}
          leftSection={<IconPlus size={16} />}
          mih={44}
        >
          {t("projects.newChat")}
        </Button>
        <Button
          variant="default"
          mih={44}
          aria-label={t("projects.editName", { name })}
          onClick={() => setMode("editing")}
        >
          {t("common.edit")}
        </Button>
        <Button
          variant="light"
          color="red"
          mih={44}
          aria-label={t("common.deleteName", { name })}
          onClick={() => setMode("deleting")}
        >
          {t("common.delete")}
        </Button>
      </Group>
      {mode === "deleting" && <DeleteProject project={project} onClose={close} />}
    </Stack>
  );
}
