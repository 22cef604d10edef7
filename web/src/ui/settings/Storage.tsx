/** What the browser gives this app, and whether it has promised to keep it. */

import { Button, Group, Progress, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { useDesk } from "../../client/backendClient.tsx";
import { Section } from "../components/Section.tsx";
import { askToKeep, useStorage } from "../browserStorage.ts";
import { settings as words } from "../words/settings.ts";

export function Storage() {
  const [storage, look] = useStorage();
  const [refused, setRefused] = useState(false);
  const leftover = useLeftover();
  if (!storage) return null;
  const { persistent, used, most } = storage;

  async function ask() {
    setRefused(!(await askToKeep()));
    look();
  }

  return (
    <Section title={words.storage}>
      <Text size="sm">{words.used(used, most)}</Text>
      <Progress value={most ? (used / most) * 100 : 0} aria-label={words.storage} />
      <Text size="sm" role="status">
        {persistent ? words.persistent : refused ? words.refusedToPersist : words.fleeting}
      </Text>
      {leftover && <Text size="sm">{words.leftover(leftover.since, leftover.hasRoom)}</Text>}
      {!persistent && (
        <Group>
          <Button variant="default" onClick={() => void ask()}>
            {words.persist}
          </Button>
        </Group>
      )}
    </Section>
  );
}

function useLeftover() {
  const { desk } = useDesk();
  const [leftover, setLeftover] = useState<{ since: string; hasRoom: boolean } | null>(null);
  useEffect(() => void desk.leftover().then(setLeftover), [desk]);
  return leftover;
}
