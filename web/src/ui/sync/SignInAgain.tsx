import { Anchor, Button, PasswordInput, Stack, Text } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import { errorMessage } from "../errorMessage.ts";
import { t } from "../../locale/t.ts";

/** Show a form to sign in again with the open account. The data on the device stays. */
export function SignInAgain() {
  const { api, account } = useAccountApi();
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    setBusy(true);
    await api
      .signInAgain(String(new FormData(event.currentTarget).get("password")))
      .then(() => setProblem(undefined))
      .catch((error: unknown) => setProblem(errorMessage(error)));
    setBusy(false);
  }

  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="xs">
        <input type="hidden" name="username" autoComplete="username" value={account.email} readOnly />
        <PasswordInput
          label={t("signIn.password")}
          name="password"
          autoComplete="current-password"
          error={problem}
          required
        />
        <Button type="submit" loading={busy}>
          {t("sync.signInAs", { email: account.email })}
        </Button>
        {(["signIn.noPassword", "signIn.forgotten"] as const).map((key) => (
          <Text key={key} size="xs" c="dimmed">
            {t(key)}
          </Text>
        ))}
        <Anchor href="/sign-in" size="sm">
          {t("sync.otherAccount")}
        </Anchor>
      </Stack>
    </form>
  );
}
