import { ActionIcon, Group, NavLink } from "@mantine/core";
import { useState } from "react";
import { Link, useRoute } from "wouter";
import { sortByLastUse } from "../../core/chat/sortByLastUse.ts";
import type { ProjectDoc, SessionDoc } from "../../core/schema/rows.ts";
import { Chevron } from "../components/Chevron.tsx";
import { useRows } from "../../client/backendClient.tsx";
import { usePendingDeletes } from "../pendingDeletes.ts";
import { SessionRow } from "./SessionRow.tsx";
import { PlainList } from "../components/PlainList.tsx";
import classes from "../projects/projects.module.css";
import { useProjects } from "../projects/useProjects.ts";
import { t } from "../../locale/t.ts";

/** Show the projects in the sidebar. Each project expands to its chats. */
export default function SidebarProjects() {
  const projects = useProjects();
  if (!projects?.length) return null;
  return (
    <PlainList gap={0} aria-label={t("projects.title")}>
      {projects.map((project) => (
        <ProjectItem key={project.id} project={project} />
      ))}
    </PlainList>
  );
}

function ProjectItem({ project: { id, name } }: { project: ProjectDoc }) {
  const [isOpen] = useRoute(`/projects/${id}/:part?`);
  const [opened, setOpened] = useState(false);
  return (
    <li>
      <Group gap={0} wrap="nowrap">
        <ActionIcon
          variant="subtle"
          color="gray"
          size={32}
          className={classes["touch"]!}
          aria-label={t("projects.showChats", { name })}
          aria-expanded={opened}
          onClick={() => setOpened(!opened)}
        >
          <Chevron />
        </ActionIcon>
        <NavLink
          component={Link}
          href={`/projects/${id}`}
          label={name}
          px={6}
          miw={0}
          active={isOpen}
          color="gray"
          aria-current={isOpen ? "page" : undefined}
          noWrap
        />
      </Group>
      {opened && <Sessions projectId={id} />}
    </li>
  );
}

function Sessions({ projectId }: { projectId: string }) {
  const pending = usePendingDeletes();
  const sessions: SessionDoc[] | undefined = useRows("sessions", { selector: { projectId } });
  return (
    <PlainList gap={0} ps="md">
      {sortByLastUse(sessions ?? [])
        .filter(({ id }) => !pending.has(id))
        .map((session) => (
          <SessionRow key={session.id} session={session} />
        ))}
    </PlainList>
  );
}
