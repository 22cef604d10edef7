import { Badge, Button, Group, Progress, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useEffect, useState } from "react";
import type { Profile } from "../../backend/api.ts";
import { useAccountApi, useSync } from "../../client/backendClient.tsx";
import { Section } from "../components/Section.tsx";
import { SignOut } from "./SignOut.tsx";
import { bytes } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Show the account's email, tier and usage, and the button to sign out. */
export function Account() {
  const { account } = useAccountApi();
  const profile = useProfile();
  const [isSigningOut, { open, close }] = useDisclosure();
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
            used={usage.documents}
            limit={limits.documents}
            text={t("settings.documentsUsed", { n: usage.documents, limit: limits.documents })}
          />
          <Meter
            label={t("settings.serverStorage")}
            used={usage.bytes}
            limit={limits.storageBytes}
            text={t("common.progress", { done: bytes(usage.bytes), total: bytes(limits.storageBytes) })}
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
      {isSigningOut && <SignOut onClose={close} />}
    </Section>
  );
}

interface MeterProps {
  label: string;
  used: number;
  limit: number;
  text: string;
}

function Meter({ label, used, limit, text }: MeterProps) {
  return (
    <div>
      <Group justify="space-between">
        <Text size="sm">{label}</Text>
        <Text size="sm">{text}</Text>
      </Group>
      <Progress value={Math.min(100, (used / limit) * 100)} aria-label={`${label}: ${text}`} />
    </div>
  );
}

/**
 * Return the server's profile of the account, or undefined until the server responds. Refresh the profile when the kind
 * of the sync status changes, and when changes start or stop waiting.
 */
function useProfile(): Profile | undefined {
  const { api } = useAccountApi();
  const { kind, waiting } = useSync() ?? {};
  const [profile, setProfile] = useState<Profile>();
  useEffect(() => {
    let isStale = false;
    api.profile().then(
      (profile) => isStale || setProfile(profile),
      () => {}, // ignored: without the server, the page shows the data on the device
    );
    return () => void (isStale = true);
  }, [api, kind, waiting === 0]);
  return profile;
}
