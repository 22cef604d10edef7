/** What is known of a person, place or thing: notes and connections, each of which can be changed. */

import { Badge, Button, CloseButton, Group, Paper, Text } from "@mantine/core";
import { useState } from "react";
import type { EntityDoc, RelationshipDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { ExpandableText } from "../components/ExpandableText.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { useUndoable } from "../useUndoable.tsx";
import { NotesForm } from "./NotesForm.tsx";
import type { Known } from "./useEntities.ts";
import { t } from "../../locale/t.ts";

export function EntityCard({ entity, known }: { entity: EntityDoc; known: Known }) {
  const { api } = useAccountApi();
  const deleteSoon = useUndoable();
  const [editing, setEditing] = useState(false);
  const { id, name, type, notes } = entity;
  const remove = () =>
    deleteSoon({
      id,
      message: t("entities.deleting", { name }),
      commit: () => api.deleteRow("entities", id),
    });
  return (
    <Paper withBorder p="sm">
      <Group gap="xs">
        <Text fw={600} dir="auto">
          {name}
        </Text>
        <Badge variant="default" size="sm">
          {t(`entities.type.${type}`)}
        </Badge>
      </Group>
      {editing ? (
        <NotesForm entity={entity} onDone={() => setEditing(false)} />
      ) : (
        <ExpandableText text={notes || t("entities.noNotes")} size="sm" {...(notes ? {} : { c: "dimmed" })} />
      )}
      <Connections entity={entity} known={known} />
      {!editing && (
        <Group gap={4} justify="end">
          <Button
            size="compact-sm"
            variant="subtle"
            aria-label={t("common.actionOn", { action: t("entities.edit"), name: name })}
            onClick={() => setEditing(true)}
          >
            {t("entities.edit")}
          </Button>
          <Button
            size="compact-sm"
            variant="subtle"
            aria-label={t("entities.deleteName", { name })}
            onClick={remove}
          >
            {t("common.delete")}
          </Button>
        </Group>
      )}
    </Paper>
  );
}

function Connections({ entity: { id, name }, known }: { entity: EntityDoc; known: Known }) {
  const { api } = useAccountApi();
  const names = new Map(known.entities.map((one) => [one.id, one.name]));
  const own = known.relationships.filter(({ fromId, toId }) => fromId === id || toId === id);
  const sentence = ({ fromId, label, toId }: RelationshipDoc) =>
    `${names.get(fromId)} ${label} ${names.get(toId)}`;
  if (own.length === 0) return null;
  return (
    <PlainList gap={0} mt={4} aria-label={t("entities.connections", { name })}>
      {own.map((edge) => (
        <Group component="li" key={edge.id} gap={4} wrap="nowrap" justify="space-between">
          <Text size="sm" dir="auto">
            {sentence(edge)}
          </Text>
          <CloseButton
            size="md"
            aria-label={t("entities.deleteConnection", { connection: sentence(edge) })}
            onClick={() => void api.deleteRow("relationships", edge.id)}
          />
        </Group>
      ))}
    </PlainList>
  );
}
