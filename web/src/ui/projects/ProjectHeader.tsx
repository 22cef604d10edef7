/** What a project is called and is about, and what can be done with it. */

import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "wouter";
import { newId } from "../../core/schema/uuid7.ts";
import type { ProjectDoc } from "../../core/schema/rows.ts";
import { stored } from "../notify.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { DeleteProject } from "./DeleteProject.tsx";
import { ProjectForm } from "./ProjectForm.tsx";
import { t } from "../../locale/t.ts";

/** `brief`: its name alone. */
export function ProjectHeader({ project, brief }: { project: ProjectDoc; brief: boolean }) {
  const { api } = useAccountApi();
  const [doing, setDoing] = useState<"nothing" | "editing" | "deleting">("nothing");
  const [begun] = useState(newId); // a conversation has an address before it is a row
  const { id, name, description } = project;
  const done = () => setDoing("nothing");

  const save = (name: string, description: string) =>
    void stored(api.memory.changeProject(id, { name, description }), done);

  const title = (
    <Title order={2} dir="auto">
      {name}
    </Title>
  );
  if (brief) return title;
  if (doing === "editing") return <ProjectForm project={project} onSave={save} onCancel={done} />;
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
          href={`/s/${begun}?project=${encodeURIComponent(id)}`}
          leftSection={<IconPlus size={16} />}
          mih={44}
        >
          {t("projects.newChat")}
        </Button>
        <Button
          variant="default"
          mih={44}
          aria-label={t("projects.editName", { name })}
          onClick={() => setDoing("editing")}
        >
          {t("common.edit")}
        </Button>
        <Button
          variant="light"
          color="red"
          mih={44}
          aria-label={t("common.deleteName", { name })}
          onClick={() => setDoing("deleting")}
        >
          {t("common.delete")}
        </Button>
      </Group>
      {doing === "deleting" && <DeleteProject project={project} onClose={done} />}
    </Stack>
  );
}
