import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { Banner } from "./components/Banner.tsx";
import { dismissLoadError, reloadIfAvailable, useLoadError } from "./loadError.ts";
import { t } from "../locale/t.ts";

/**
 * Offer to reload the page when a part of it could not be loaded. The page does not reload by itself, because the user
 * may be writing.
 */
export function LoadErrorPrompt() {
  const hasError = useLoadError();
  return <div role="alert">{hasError && <Prompt />}</div>;
}

function Prompt() {
  const [isUnreachable, setUnreachable] = useState(false);
  const [busy, setBusy] = useState(false);

  async function reload() {
    setBusy(true);
    setUnreachable(!(await reloadIfAvailable()));
    setBusy(false);
  }

  return (
    <Banner>
      <Text size="sm">{t("app.loadFailed")}</Text>
      {isUnreachable && <Text size="sm">{t("app.unreachable")}</Text>}
      <Group gap="xs" mt="xs">
        <Button size="xs" loading={busy} onClick={() => void reload()}>
          {t("app.reload")}
        </Button>
        <Button size="xs" variant="default" onClick={dismissLoadError}>
          {t("app.later")}
        </Button>
      </Group>
    </Banner>
  );
}
