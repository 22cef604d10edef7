/** Sets or changes the password. */

import { Alert, Button, Group, PasswordInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import { said } from "../errorMessage.ts";
import { Section } from "../components/Section.tsx";
import { t } from "../../locale/t.ts";

const LEAST = 10;

export function Password() {
  const { api, account } = useAccountApi();
  const [told, setTold] = useState<{ good: boolean; text: string }>();
  const [busy, setBusy] = useState(false);

  async function change(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const given = new FormData(form);
    setBusy(true);
    setTold(undefined);
    try {
      await api.changePassword(String(given.get("current")), String(given.get("new")));
      form.reset();
      setTold({ good: true, text: t("settings.passwordChanged") });
    } catch (error) {
      setTold({ good: false, text: said(error) });
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
            minLength={LEAST}
            miw="min(100%, 12.5rem)"
            required
          />
        </Group>
        <Button type="submit" variant="default" mt="sm" loading={busy}>
          {t("settings.setPassword")}
        </Button>
      </form>
      <div role="status">{told && <Alert color={told.good ? "teal" : "red"}>{told.text}</Alert>}</div>
    </Section>
  );
}
