import { Button, Group, Paper, Text } from "@mantine/core";
import { useState } from "react";
import { applyUpdate, useUpdateReady } from "./appUpdate.ts";
import { t } from "../locale/t.ts";

/** Offer to reload the page when a new version of the app has been downloaded. */
export function UpdatePrompt() {
  const isReady = useUpdateReady();
  const [dismissed, setDismissed] = useState(false);
  return (
    <div role="status">
      {isReady && !dismissed && (
        <Paper withBorder p="sm">
          <Text size="sm">{t("app.updateReady")}</Text>
          <Group gap="xs" mt="xs">
            <Button size="xs" onClick={() => void applyUpdate()}>
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
