/** The sign-in page for an email address and a password. Sign-in links are handled by the server. */

import {
  Alert,
  Button,
  Container,
  Divider,
  PasswordInput,
  Stack,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useEffect, useState, type FormEvent } from "react";
import type { DeviceAccount } from "../backend/api.ts";
import { signInApi } from "../client/backendClient.tsx";
import { isUnreachable, errorMessage } from "./errorMessage.ts";
import { t } from "../locale/t.ts";

export default function SignIn() {
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setBusy(true);
    try {
      await signInApi.signIn(String(form.get("email")), String(form.get("password")));
      location.assign("/");
    } catch (error) {
      setProblem(isUnreachable(error) ? t("signIn.offline") : errorMessage(error));
      setBusy(false);
    }
  }

  return (
    <Container component="main" size="xs" pt="12dvh" pb="xl">
      <form onSubmit={(event) => void submit(event)}>
        <Stack>
          <Title fz="clamp(1.5rem, 10vw, 2.125rem)">{t("app.name")}</Title>
          {problem && (
            <Alert color="red" role="alert">
              {problem}
            </Alert>
          )}
          <TextInput
            label={t("signIn.email")}
            description={t("signIn.emailHint")}
            name="email"
            type="email"
            autoComplete="username"
            required
          />
          <PasswordInput
            label={t("signIn.password")}
            name="password"
            autoComplete="current-password"
            required
          />
          <Button type="submit" loading={busy}>
            {t("signIn.submit")}
          </Button>
          {(["signIn.noPassword", "signIn.forgotten"] as const).map((key) => (
            <Text key={key} size="sm" c="dimmed">
              {t(key)}
            </Text>
          ))}
        </Stack>
      </form>
      <DeviceAccounts />
    </Container>
  );
}

/** Show the accounts with data on this device. They can be opened without the server. */
function DeviceAccounts() {
  const [accounts, setAccounts] = useState<DeviceAccount[]>([]);
  useEffect(() => void signInApi.deviceAccounts().then(setAccounts), []);
  if (accounts.length === 0) return null;

  async function open(userId: string) {
    await signInApi.selectDeviceAccount(userId);
    location.assign("/");
  }

  return (
    <Stack mt="xl">
      <Divider label={t("signIn.deviceAccounts")} />
      {accounts.map(({ userId, email }) => (
        <Button key={userId} variant="default" onClick={() => void open(userId)}>
          {t("signIn.open", { email })}
        </Button>
      ))}
    </Stack>
  );
}
