import { Anchor, Button, Group, Paper, Select, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { sortByLastUse } from "../../core/chat/sortByLastUse.ts";
import type { ProjectDoc, SessionDoc } from "../../core/schema/rows.ts";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { usePendingDeletes } from "../pendingDeletes.ts";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const OPTIONS_MAX = 50;

/** Show the chats of a project. The user can move chats into the project and remove chats from it. */
export function ProjectSessions({ project: { id } }: { project: ProjectDoc }) {
  const { api } = useAccountApi();
  const pending = usePendingDeletes();
  const rows = useRows("sessions");
  const all = rows && sortByLastUse(rows).filter(({ id }) => !pending.has(id));
  const inside = all?.filter(({ projectId }) => projectId === id);
  const outside = all?.filter(({ projectId }) => projectId !== id) ?? [];
  const move = (sessionId: string, to: string | null) => void api.memory.moveSession(sessionId, to);
  return (
    <Section title={t("projects.chats")} hint={t("projects.chatsHint")}>
      {inside?.length === 0 && <Text c="dimmed">{t("projects.noChats")}</Text>}
      <PlainList aria-label={t("projects.chats")}>
        {inside?.map((session) => (
          <SessionItem key={session.id} session={session} onRemove={() => move(session.id, null)} />
        ))}
      </PlainList>
      {outside.length > 0 && (
        <Select
          label={t("projects.moveIn")}
          placeholder={t("projects.moveInChoose")}
          searchable
          value={null}
          limit={OPTIONS_MAX}
          nothingFoundMessage={t("projects.moveInNone")}
          data={outside.map(({ id, title }) => ({ value: id, label: title }))}
          onChange={(chosen) => chosen && move(chosen, id)}
        />
      )}
    </Section>
  );
}

function SessionItem({ session, onRemove }: { session: SessionDoc; onRemove: () => void }) {
  const { id, title, updatedAt } = session;
  return (
    <Paper component="li" withBorder px="sm" py={6}>
      <Group justify="space-between" wrap="nowrap">
        <Stack gap={0} miw={0}>
          <Anchor component={Link} href={`/s/${id}`} dir="auto">
            {title}
          </Anchor>
          <Text size="xs" c="dimmed">
            {date(updatedAt)}
          </Text>
        </Stack>
        <Button
          variant="subtle"
          size="compact-md"
          flex="none"
          aria-label={t("common.actionOn", { action: t("projects.remove"), name: title })}
          onClick={onRemove}
        >
          {t("projects.remove")}
        </Button>
      </Group>
    </Paper>
  );
}
