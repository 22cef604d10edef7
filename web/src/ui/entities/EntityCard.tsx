import { Badge, Button, CloseButton, Group, Paper, Text } from "@mantine/core";
import { useState } from "react";
import type { EntityDoc, RelationshipDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { ExpandableText } from "../components/ExpandableText.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { useUndoableDelete } from "../useUndoableDelete.tsx";
import { NotesForm } from "./NotesForm.tsx";
import type { EntityNetwork } from "./useEntities.ts";
import { t } from "../../locale/t.ts";

/** Show an entity, its notes and its connections. The user can edit the notes and delete the entity or a connection. */
export function EntityCard({ entity, network }: { entity: EntityDoc; network: EntityNetwork }) {
  const { api } = useAccountApi();
  const deleteUndoably = useUndoableDelete();
  const [editing, setEditing] = useState(false);
  const { id, name, type, notes } = entity;
  const remove = () =>
    deleteUndoably({
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
      <Connections entity={entity} network={network} />
      {!editing && (
        <Group gap={4} justify="end">
          <Button
            size="compact-sm"
            variant="subtle"
            aria-label={t("common.actionOn", { action: t("entities.edit"), name })}
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

function Connections({ entity: { id, name }, network }: { entity: EntityDoc; network: EntityNetwork }) {
  const { api } = useAccountApi();
  const names = new Map(network.entities.map(({ id, name }) => [id, name]));
  const own = network.relationships.filter(({ fromId, toId }) => fromId === id || toId === id);
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
