/** A newer version is here: it is loaded when somebody says so. */

import { Button, Group, Paper, Text } from "@mantine/core";
import { useState } from "react";
import { changeVersion, useNewVersion } from "./appUpdate.ts";
import { t } from "../locale/t.ts";

export function UpdatePrompt() {
  const newer = useNewVersion();
  const [dismissed, setDismissed] = useState(false);
  return (
    <div role="status">
      {newer && !dismissed && (
        <Paper withBorder p="sm">
          <Text size="sm">{t("app.updateReady")}</Text>
          <Group gap="xs" mt="xs">
            <Button size="xs" onClick={() => void changeVersion()}>
              {t("app.update")}
            </Button>
            <Button size="xs" variant="default" onClick={() => setDismissed(true)}>
              {t("app.later")}
            </Button>
          </Group>
        </Paper>
      )}
    </div>
  );
}
