/** Whose account this is, what it may hold and what it holds. */

import { Badge, Button, Group, Progress, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useEffect, useState } from "react";
import type { Profile } from "../../backend/account/accounts.ts";
import { useAccountApi, useSync } from "../../client/backendClient.tsx";
import { Section } from "../components/Section.tsx";
import { SignOut } from "./SignOut.tsx";
import { bytes } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

export function Account() {
  const { account } = useAccountApi();
  const profile = useProfile();
  const [leaving, { open, close }] = useDisclosure();
  const { limits } = profile ?? account;
  const usage = profile?.usage;
  return (
    <Section title={t("settings.account")}>
      <Group justify="space-between">
        <Text>{account.email}</Text>
        <Badge variant="light">{profile?.tier ?? account.tier}</Badge>
      </Group>
      {usage ? (
        <>
          <Meter
            label={t("settings.documents")}
            held={usage.documents}
            most={limits.documents}
            said={t("settings.documentsUsed", { n: usage.documents, limit: limits.documents })}
          />
          <Meter
            label={t("settings.serverStorage")}
            held={usage.bytes}
            most={limits.storageBytes}
            said={t("common.progress", { done: bytes(usage.bytes), total: bytes(limits.storageBytes) })}
          />
        </>
      ) : (
        <Text size="sm" c="dimmed">
          {t("settings.usageOffline")}
        </Text>
      )}
      <Group justify="space-between">
        <Text size="sm">{t("settings.fileLimit")}</Text>
        <Text size="sm">{bytes(limits.fileBytes)}</Text>
      </Group>
      <Group>
        <Button variant="default" onClick={open}>
          {t("settings.signOut")}
        </Button>
      </Group>
      {leaving && <SignOut onClose={close} />}
    </Section>
  );
}

interface MeterProps {
  label: string;
  held: number;
  most: number;
  said: string;
}

function Meter({ label, held, most, said }: MeterProps) {
  return (
    <div>
      <Group justify="space-between">
        <Text size="sm">{label}</Text>
        <Text size="sm">{said}</Text>
      </Group>
      <Progress value={Math.min(100, (held / most) * 100)} aria-label={`${label}: ${said}`} />
    </div>
  );
}

/** As the server knows the account, asked again when it is back or has all of what waited; undefined until it answers. */
function useProfile(): Profile | undefined {
  const { api } = useAccountApi();
  const { kind, waiting } = useSync() ?? {};
  const [profile, setProfile] = useState<Profile>();
  useEffect(() => {
    let isHere = true;
    // Offline: what the device knows is shown.
    api.profile().then(
      (found) => isHere && setProfile(found),
      () => {},
    );
    return () => void (isHere = false);
  }, [api, kind, waiting === 0]);
  return profile;
}
