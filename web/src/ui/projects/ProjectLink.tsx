import { Anchor, Group } from "@mantine/core";
import { IconFolder } from "@tabler/icons-react";
import { Link } from "wouter";
import { useRows } from "../../client/backendClient.tsx";

/** Show a link to the project of a chat. */
export default function ProjectLink({ id }: { id: string }) {
  const project = useRows("projects", { selector: { id } })?.[0];
  if (!project) return null;
  return (
    <Anchor component={Link} href={`/projects/${id}`} size="sm" display="inline-block" py={4}>
      <Group gap={6} wrap="nowrap" dir="auto">
        <IconFolder size={16} aria-hidden />
        {project.name}
      </Group>
    </Anchor>
  );
}
