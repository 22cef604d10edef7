/** A newer version is here: it is loaded when somebody says so. */

import { Button, Group, Paper, Text } from "@mantine/core";
import { useState } from "react";
import { changeVersion, useNewVersion } from "./appUpdate.ts";
import { words } from "./words.ts";

export function UpdatePrompt() {
  const newer = useNewVersion();
  const [dismissed, setDismissed] = useState(false);
  return (
    <div role="status">
      {newer && !dismissed && (
        <Paper withBorder p="sm">
          <Text size="sm">{words.places.newer}</Text>
          <Group gap="xs" mt="xs">
            <Button size="xs" onClick={() => void changeVersion()}>
              {words.places.loadVersion}
            </Button>
            <Button size="xs" variant="default" onClick={() => setDismissed(true)}>
              {words.places.later}
            </Button>
          </Group>
        </Paper>
      )}
    </div>
  );
}
