import { Alert, Badge, Button, Group, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { DeviceAccount } from "../../backend/api.ts";
import { signInApi, useAccountApi } from "../../client/backendClient.tsx";
import { clearLocalStorage } from "../drafts.ts";
import { PlainList } from "../components/PlainList.tsx";
import { errorMessage } from "../errorMessage.ts";
import { Section } from "../components/Section.tsx";
import { t } from "../../locale/t.ts";

/** Show the accounts with data on this device, with buttons to remove the data of accounts that are not in use. */
export function DeviceAccounts() {
  const { account } = useAccountApi();
  const [accounts, setAccounts] = useState<DeviceAccount[]>([]);
  const refresh = () => void signInApi.deviceAccounts().then(setAccounts);
  useEffect(refresh, []);
  return (
    <Section title={t("settings.accounts")} hint={t("settings.accountsHint")}>
      <PlainList gap="sm">
        {accounts.map(({ userId, email }) =>
          userId === account.userId ? (
            <Group key={userId} component="li" justify="space-between">
              <Text>{email}</Text>
              <Badge variant="light">{t("settings.inUse")}</Badge>
            </Group>
          ) : (
            <OtherAccount key={userId} userId={userId} email={email} onRemoved={refresh} />
          ),
        )}
      </PlainList>
    </Section>
  );
}

interface OtherAccountProps {
  userId: string;
  email: string;
  onRemoved: () => void;
}

function OtherAccount({ userId, email, onRemoved }: OtherAccountProps) {
  const [isConfirming, setConfirming] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();

  async function remove() {
    setBusy(true);
    setProblem(undefined);
    try {
      await signInApi.removeDeviceAccount(userId);
      clearLocalStorage(userId);
      onRemoved();
    } catch (error) {
      setProblem(errorMessage(error));
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
          onClick={() => setConfirming(true)}
        >
          {t("settings.remove")}
        </Button>
      </Group>
      {isConfirming && (
        <Alert color="red" mt="xs" role="alert">
          <Text size="sm">{problem ?? t("settings.removeConfirm", { email })}</Text>
          <Group gap="xs" mt="xs">
            <Button size="compact-md" color="red" loading={busy} onClick={() => void remove()}>
              {t("settings.remove")}
            </Button>
            <Button size="compact-md" variant="default" onClick={() => setConfirming(false)} autoFocus>
              {t("common.cancel")}
            </Button>
          </Group>
        </Alert>
      )}
    </li>
  );
}
