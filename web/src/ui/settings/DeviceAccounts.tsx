/** The accounts that have rows on this device, each in a database of its own. */

import { Alert, Badge, Button, Group, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { DeviceAccount } from "../../storage/deviceDatabase.ts";
import { signInApi, useAccountApi } from "../../client/backendClient.tsx";
import { forgetDrafts } from "../drafts.ts";
import { PlainList } from "../components/PlainList.tsx";
import { said } from "../errorMessage.ts";
import { Section } from "../components/Section.tsx";
import { t } from "../../locale/t.ts";

export function DeviceAccounts() {
  const { account } = useAccountApi();
  const [accounts, setAccounts] = useState<DeviceAccount[]>([]);
  const look = () => void signInApi.deviceAccounts().then(setAccounts);
  useEffect(look, []);
  return (
    <Section title={t("settings.accounts")} hint={t("settings.accountsHint")}>
      <PlainList gap="sm">
        {accounts.map((kept) =>
          kept.userId === account.userId ? (
            <Group key={kept.userId} component="li" justify="space-between">
              <Text>{kept.email}</Text>
              <Badge variant="light">{t("settings.inUse")}</Badge>
            </Group>
          ) : (
            <Kept key={kept.userId} kept={kept} onRemoved={look} />
          ),
        )}
      </PlainList>
    </Section>
  );
}

function Kept({ kept: { email, userId }, onRemoved }: { kept: DeviceAccount; onRemoved: () => void }) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();

  async function remove() {
    setBusy(true);
    setProblem(undefined);
    try {
      await signInApi.removeDeviceAccount(userId);
      forgetDrafts(userId);
      onRemoved();
    } catch (error) {
      setProblem(said(error));
      setBusy(false);
    }
  }

  return (
    <li>
      <Group justify="space-between">
        <Text>{email}</Text>
        <Button
          size="compact-md"
          variant="subtle"
          color="red"
          aria-label={t("settings.removeName", { email })}
          onClick={() => setAsking(true)}
        >
          {t("settings.remove")}
        </Button>
      </Group>
      {asking && (
        <Alert color="red" mt="xs" role="alert">
          <Text size="sm">{problem ?? t("settings.removeConfirm", { email })}</Text>
          <Group gap="xs" mt="xs">
            <Button size="compact-md" color="red" loading={busy} onClick={() => void remove()}>
              {t("settings.remove")}
            </Button>
            <Button size="compact-md" variant="default" onClick={() => setAsking(false)} autoFocus>
              {t("common.cancel")}
            </Button>
          </Group>
        </Alert>
      )}
    </li>
  );
}
