/** A part of the app could not be loaded: everything is loaded anew when somebody says so, who may be writing. */

import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { Banner } from "./components/Banner.tsx";
import { dismissUnloaded, loadAgain, useLoadError } from "./loadError.ts";
import { words } from "./words.ts";

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
      <Text size="sm">{words.places.unloaded}</Text>
      {!answers && <Text size="sm">{words.places.unreachable}</Text>}
      <Group gap="xs" mt="xs">
        <Button size="xs" loading={busy} onClick={() => void load()}>
          {words.places.reload}
        </Button>
        <Button size="xs" variant="default" onClick={dismissUnloaded}>
          {words.places.later}
        </Button>
      </Group>
    </Banner>
  );
}
