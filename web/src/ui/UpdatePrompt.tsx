/** A newer version is here: it is loaded when somebody says so, or when a tab that has it waits and nothing gets lost. */

import { Button, Group, Paper, Text } from "@mantine/core";
import { useState } from "react";
import { changeVersion, useNewVersion } from "./update.ts";
import { useAsked } from "./asked.ts";
import { words } from "./words.ts";

export function UpdatePrompt() {
  const newer = useNewVersion();
  const asked = useAsked();
  const [dismissed, setDismissed] = useState(false);
  return (
    <div role="status">
      {asked && (
        <Paper withBorder p="sm">
          <Text size="sm">{words.places.asked}</Text>
          <Button size="xs" mt="xs" onClick={() => location.reload()}>
            {words.places.reload}
          </Button>
        </Paper>
      )}
      {newer && !asked && !dismissed && (
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
