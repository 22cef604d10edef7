import { NativeSelect, Skeleton, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useProjects } from "../projects/useProjects.ts";
import { ProjectEntities } from "./ProjectEntities.tsx";
import { t } from "../../locale/t.ts";

/** Show the entities of one project. The user chooses the project. */
export function Entities() {
  const projects = useProjects();
  const [chosen, setChosen] = useState<string>();
  if (!projects) return <Skeleton h={96} />;
  const [first] = projects;
  if (!first) return <Text c="dimmed">{t("entities.noProjects")}</Text>;
  const projectId = chosen ?? first.id;
  return (
    <Stack gap="lg">
      <NativeSelect
        label={t("entities.project")}
        maw="24rem"
        value={projectId}
        onChange={(event) => setChosen(event.currentTarget.value)}
        data={projects.map(({ id, name }) => ({ value: id, label: name }))}
      />
      <ProjectEntities key={projectId} projectId={projectId} />
    </Stack>
  );
}
