import {
  Anchor,
  Box,
  Button,
  Checkbox,
  Container,
  Group,
  Paper,
  Skeleton,
  Stack,
  Text,
  Title,
} from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { groupBy } from "../../lib/groupBy.ts";
import type { ProjectDoc } from "../../core/schema/rows.ts";
import type { AgentProject } from "../../backend/api.ts";
import { useAgentProjects } from "../agents/useAgentActivity.ts";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { notifyError } from "../notify.ts";
import { useNow } from "../useNow.ts";
import { ProjectForm } from "./ProjectForm.tsx";
import { useProjects } from "./useProjects.ts";
import { ago } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Show the page with all projects. */
export function ProjectList() {
  const { api } = useAccountApi();
  const [, navigate] = useLocation();
  const [adding, setAdding] = useState(false);

  const add = (name: string, description: string) =>
    void api.memory.addProject(name, description).then((id) => navigate(`/projects/${id}`), notifyError);

  return (
    <Container size="sm" py="lg">
      <Stack gap="lg">
        <Box>
          <Group justify="space-between" align="center">
            <Title order={2}>{t("projects.title")}</Title>
            {!adding && (
              <Button leftSection={<IconPlus size={16} />} onClick={() => setAdding(true)} mih={44}>
                {t("projects.new")}
              </Button>
            )}
          </Group>
          <Text c="dimmed" mt={4}>
            {t("projects.hint")}
          </Text>
        </Box>
        {adding && <ProjectForm onSave={add} onCancel={() => setAdding(false)} />}
        <FilteredProjects />
      </Stack>
    </Container>
  );
}

function FilteredProjects() {
  const all = useProjects();
  const agentProjects = useAgentProjects();
  const [onlyAgents, setOnlyAgents] = useState(false);
  if (!all) return <Skeleton h={96} />;
  if (all.length === 0) return <Text c="dimmed">{t("projects.none")}</Text>;
  const filtered = onlyAgents && agentProjects ? all.filter(({ id }) => agentProjects.has(id)) : all;
  return (
    <Stack gap="sm">
      {agentProjects && agentProjects.size > 0 && (
        <Checkbox
          label={t("agents.onlyProjects")}
          py={12}
          checked={onlyAgents}
          onChange={(event) => setOnlyAgents(event.currentTarget.checked)}
        />
      )}
      {agentProjects === null && (
        <Text size="sm" c="dimmed" role="status">
          {t("agents.projectsOffline")}
        </Text>
      )}
      <List projects={filtered} agentProjects={agentProjects} />
    </Stack>
  );
}

interface ListProps {
  projects: readonly ProjectDoc[];
  agentProjects: ReturnType<typeof useAgentProjects>;
}

function List({ projects, agentProjects }: ListProps) {
  const now = useNow();
  const sessions = groupBy(useRows("sessions") ?? [], ({ projectId }) => projectId);
  const memories = groupBy(useRows("memories") ?? [], ({ projectId }) => projectId);
  return (
    <PlainList gap="sm" aria-label={t("projects.title")}>
      {projects.map(({ id, name, description }) => (
        <Paper key={id} component="li" withBorder p="md">
          <Anchor component={Link} href={`/projects/${id}`} fw={600} size="lg" dir="auto" display="block">
            {name}
          </Anchor>
          {description && (
            <Text dir="auto" lineClamp={2}>
              {description}
            </Text>
          )}
          <Text size="sm" c="dimmed" mt={4}>
            {t("projects.counts", {
              chats: sessions.get(id)?.length ?? 0,
              memories: memories.get(id)?.length ?? 0,
            })}
          </Text>
          <AgentActivityLink project={agentProjects?.get(id)} now={now} />
        </Paper>
      ))}
    </PlainList>
  );
}

function AgentActivityLink({ project, now }: { project: AgentProject | undefined; now: number }) {
  if (!project?.lastAt) return null;
  const { id, name } = project.project;
  const text = t("agents.inProject", { n: project.observations, when: ago(project.lastAt, now) });
  return (
    <Anchor
      component={Link}
      href={`/projects/${id}/agents`}
      size="sm"
      py={12}
      mb={-12}
      display="inline-block"
      aria-label={t("common.actionOn", { action: name, name: text })}
    >
      {text}
    </Anchor>
  );
}
