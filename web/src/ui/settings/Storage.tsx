import { Button, Group, Progress, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import { Section } from "../components/Section.tsx";
import { requestPersistence, useStorageEstimate } from "../browserStorage.ts";
import { bytes, date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Show the storage that this app uses, and whether the browser may delete it. */
export function Storage() {
  const [storage, refresh] = useStorageEstimate();
  const [refused, setRefused] = useState(false);
  const leftover = useLeftover();
  if (!storage) return null;
  const { persistent, used, limit } = storage;

  async function persist() {
    setRefused(!(await requestPersistence()));
    refresh();
  }

  return (
    <Section title={t("settings.storage")}>
      <Text size="sm">{t("settings.storageUsed", { used: bytes(used), limit: bytes(limit) })}</Text>
      <Progress value={limit ? (used / limit) * 100 : 0} aria-label={t("settings.storage")} />
      <Text size="sm" role="status">
        {persistent
          ? t("settings.storageKept")
          : refused
            ? t("settings.persistRefused")
            : t("settings.storageTemporary")}
      </Text>
      {leftover && (
        <Text size="sm">
          {t("settings.deletedText", { date: date(leftover.since), hasRoom: String(leftover.hasRoom) })}
        </Text>
      )}
      {!persistent && (
        <Group>
          <Button variant="default" onClick={() => void persist()}>
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
