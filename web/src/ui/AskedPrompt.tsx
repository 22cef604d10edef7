/** A tab with another version of the app waits for this one, in which something might get lost: whoever writes says when. */

import { Button, Text } from "@mantine/core";
import { useAsked } from "./asked.ts";
import { Banner } from "./Banner.tsx";
import { words } from "./words.ts";

export function AskedPrompt() {
  return <div role="status">{useAsked() && <Asked />}</div>;
}

function Asked() {
  return (
    <Banner>
      <Text size="sm">{words.places.asked}</Text>
      <Button size="xs" mt="xs" onClick={() => location.reload()}>
        {words.places.reload}
      </Button>
    </Banner>
  );
}
