/** The conversations of a project; one can be brought in, and taken out again. */

import { Anchor, Button, Group, Paper, Select, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { latestFirst } from "../../core/chat/sortByLastUse.ts";
import type { ProjectDoc, SessionDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { usePending } from "../pendingDeletes.ts";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { useAccountApi } from "../../client/backendClient.tsx";
import { date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const OFFERED = 50;

export function ProjectSessions({ project: { id } }: { project: ProjectDoc }) {
  const { api } = useAccountApi();
  const pending = usePending();
  const found = useRows("sessions");
  const all = found && latestFirst(found).filter((one) => !pending.has(one.id));
  const inside = all?.filter(({ projectId }) => projectId === id);
  const outside = all?.filter(({ projectId }) => projectId !== id) ?? [];
  const move = (sessionId: string, to: string | null) => void api.memory.moveSession(sessionId, to);
  return (
    <Section title={t("projects.chats")} hint={t("projects.chatsHint")}>
      {inside?.length === 0 && <Text c="dimmed">{t("projects.noChats")}</Text>}
      <PlainList aria-label={t("projects.chats")}>
        {inside?.map((session) => (
          <Row key={session.id} session={session} onOut={() => move(session.id, null)} />
        ))}
      </PlainList>
      {outside.length > 0 && (
        <Select
          label={t("projects.moveIn")}
          placeholder={t("projects.moveInChoose")}
          searchable
          value={null}
          limit={OFFERED}
          nothingFoundMessage={t("projects.moveInNone")}
          data={outside.map(({ id, title }) => ({ value: id, label: title }))}
          onChange={(chosen) => chosen && move(chosen, id)}
        />
      )}
    </Section>
  );
}

function Row({ session: { id, title, updatedAt }, onOut }: { session: SessionDoc; onOut: () => void }) {
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
          onClick={onOut}
        >
          {t("projects.remove")}
        </Button>
      </Group>
    </Paper>
  );
}
