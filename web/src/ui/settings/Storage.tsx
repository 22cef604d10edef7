/** What the browser gives this app, and whether it has promised to keep it. */

import { Button, Group, Progress, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import { Section } from "../components/Section.tsx";
import { askToKeep, useStorage } from "../browserStorage.ts";
import { bytes, date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

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
    <Section title={t("settings.storage")}>
      <Text size="sm">{t("settings.storageUsed", { used: bytes(used), limit: bytes(most) })}</Text>
      <Progress value={most ? (used / most) * 100 : 0} aria-label={t("settings.storage")} />
      <Text size="sm" role="status">
        {persistent
          ? t("settings.storageKept")
          : refused
            ? t("settings.persistRefused")
            : t("settings.storageTemporary")}
      </Text>
      {leftover && (
        <Text size="sm">
          {t("settings.leftover", { date: date(leftover.since), hasRoom: String(leftover.hasRoom) })}
        </Text>
      )}
      {!persistent && (
        <Group>
          <Button variant="default" onClick={() => void ask()}>
            {t("settings.persist")}
          </Button>
        </Group>
      )}
    </Section>
  );
}

function useLeftover() {
  const { api } = useAccountApi();
  const [leftover, setLeftover] = useState<{ since: string; hasRoom: boolean } | null>(null);
  useEffect(() => void api.deletedTextStatus().then(setLeftover), [api]);
  return leftover;
}
