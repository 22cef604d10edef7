import { Button, Text } from "@mantine/core";
import { useReloadRequest } from "./reloadRequest.ts";
import { Banner } from "./components/Banner.tsx";
import { t } from "../locale/t.ts";

/** Ask the user to reload when another tab requests a reload and this tab has unsaved text. */
export function ReloadRequestPrompt() {
  return <div role="status">{useReloadRequest() && <Prompt />}</div>;
}

function Prompt() {
  return (
    <Banner>
      <Text size="sm">{t("app.reloadRequested")}</Text>
      <Button size="xs" mt="xs" onClick={() => location.reload()}>
        {t("app.reload")}
      </Button>
    </Banner>
  );
}
