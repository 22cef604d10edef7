/** A part of the app could not be loaded: everything is loaded anew when somebody says so, who may be writing. */

import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { Banner } from "./components/Banner.tsx";
import { dismissUnloaded, loadAgain, useLoadError } from "./loadError.ts";
import { t } from "../locale/t.ts";

export function LoadErrorPrompt() {
  const lacks = useLoadError();
  return <div role="alert">{lacks && <Prompt />}</div>;
}

function Prompt() {
  const [answers, setAnswers] = useState(true);
  const [busy, setBusy] = useState(false);

  async function load() {
    setBusy(true);
    setAnswers(await loadAgain());
    setBusy(false);
  }

  return (
    <Banner>
      <Text size="sm">{t("app.loadFailed")}</Text>
      {!answers && <Text size="sm">{t("app.unreachable")}</Text>}
      <Group gap="xs" mt="xs">
        <Button size="xs" loading={busy} onClick={() => void load()}>
          {t("app.reload")}
        </Button>
        <Button size="xs" variant="default" onClick={dismissUnloaded}>
          {t("app.later")}
        </Button>
      </Group>
    </Banner>
  );
}
