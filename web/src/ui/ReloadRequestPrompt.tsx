/** A tab with another version of the app waits for this one, in which something might get lost: whoever writes says when. */

import { Button, Text } from "@mantine/core";
import { useReloadRequest } from "./reloadRequest.ts";
import { Banner } from "./components/Banner.tsx";
import { t } from "../locale/t.ts";

export function ReloadRequestPrompt() {
  return <div role="status">{useReloadRequest() && <Asked />}</div>;
}

function Asked() {
  return (
    <Banner>
      <Text size="sm">{t("app.reloadRequested")}</Text>
      <Button size="xs" mt="xs" onClick={() => location.reload()}>
        {t("app.reload")}
      </Button>
    </Banner>
  );
}
