import { Anchor, Container, Skeleton, Stack, Text } from "@mantine/core";
import { Suspense } from "react";
import { Link } from "wouter";
import { useRows } from "../../client/backendClient.tsx";
import { ProjectEntities } from "../entities/ProjectEntities.tsx";
import { StatementList } from "../memory/StatementList.tsx";
import { SubNav } from "../components/SubNav.tsx";
import { ProjectOverview } from "./ProjectOverview.tsx";
import { ProjectHeader } from "./ProjectHeader.tsx";
import { ProjectSessions } from "./ProjectSessions.tsx";
import { lazyComponent } from "../lazyComponent.ts";
import { t } from "../../locale/t.ts";

const AgentSteps = lazyComponent(() => import("../agents/AgentSteps.tsx"));

/** Show a page of a project. `part` is the name of the page. If it is undefined, show the overview. */
export function ProjectPage({ id, part }: { id: string; part: string | undefined }) {
  const rows = useRows("projects", { selector: { id } });
  const project = rows?.[0];
  const pages = [
    { to: `/projects/${id}`, label: t("projects.overview") },
    { to: `/projects/${id}/remembered`, label: t("projects.memories") },
    { to: `/projects/${id}/entities`, label: t("projects.entities") },
    { to: `/projects/${id}/agents`, label: t("projects.agents") },
  ];
  return (
    <Container size={part === "entities" ? "md" : "sm"} py="lg">
      <Stack gap="lg">
        <Anchor component={Link} href="/projects" size="sm" py="xs" style={{ alignSelf: "start" }}>
          {t("projects.back")}
        </Anchor>
        {!rows && <Skeleton h={96} />}
        {rows && !project && <Text>{t("projects.missing")}</Text>}
        {project && (
          <>
            <ProjectHeader project={project} brief={part !== undefined} />
            <SubNav label={t("projects.nav")} pages={pages} />
            {part === undefined && <ProjectOverview projectId={id} />}
            {part === undefined && <ProjectSessions project={project} />}
            {part === "remembered" && <StatementList projectId={id} />}
            {part === "entities" && <ProjectEntities projectId={id} />}
            {part === "agents" && (
              <Suspense fallback={<Skeleton h={120} />}>
                <AgentSteps projectId={id} />
              </Suspense>
            )}
          </>
        )}
      </Stack>
    </Container>
  );
}
