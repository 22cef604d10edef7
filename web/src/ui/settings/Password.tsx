import { Alert, Button, Group, PasswordInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import { errorMessage } from "../errorMessage.ts";
import { Section } from "../components/Section.tsx";
import { t } from "../../locale/t.ts";

const LENGTH_MIN = 10;

/** Show a form to set or change the password. */
export function Password() {
  const { api, account } = useAccountApi();
  const [result, setResult] = useState<{ isError: boolean; text: string }>();
  const [busy, setBusy] = useState(false);

  async function change(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const values = new FormData(form);
    setBusy(true);
    setResult(undefined);
    try {
      await api.changePassword(String(values.get("current")), String(values.get("new")));
      form.reset();
      setResult({ isError: false, text: t("settings.passwordChanged") });
    } catch (error) {
      setResult({ isError: true, text: errorMessage(error) });
    }
    setBusy(false);
  }

  return (
    <Section title={t("settings.password")} hint={t("settings.passwordHint")}>
      <form onSubmit={(event) => void change(event)}>
        <input type="hidden" name="username" autoComplete="username" value={account.email} readOnly />
        <Group align="start" grow preventGrowOverflow={false}>
          <PasswordInput
            label={t("settings.currentPassword")}
            description={t("settings.currentPasswordHint")}
            name="current"
            autoComplete="current-password"
            miw="min(100%, 12.5rem)"
          />
          <PasswordInput
            label={t("settings.newPassword")}
            description={t("settings.newPasswordHint")}
            name="new"
            autoComplete="new-password"
            minLength={LENGTH_MIN}
            miw="min(100%, 12.5rem)"
            required
          />
        </Group>
        <Button type="submit" variant="default" mt="sm" loading={busy}>
          {t("settings.setPassword")}
        </Button>
      </form>
      <div role="status">
        {result && <Alert color={result.isError ? "red" : "teal"}>{result.text}</Alert>}
      </div>
    </Section>
  );
}
