/** The server wants a newer app: the way to it. */

import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { changeVersion, lookForVersion } from "../update.ts";
import { words } from "../words.ts";

export function NewVersion() {
  const [missing, setMissing] = useState(false);

  async function load() {
    if (await lookForVersion()) await changeVersion();
    else setMissing(true);
  }

  return (
    <>
      <Button onClick={() => void load()}>{words.sync.loadVersion}</Button>
      {missing && (
        <Text size="sm" role="alert">
          {words.sync.noVersion}
        </Text>
      )}
    </>
  );
}
