/** What a statement said before: each can be used again. */

import { Button, Group, Paper } from "@mantine/core";
import type { MemoryDoc } from "../../model/rows.ts";
import { Long } from "../Long.tsx";
import { PlainList } from "../PlainList.tsx";
import { useMemoryDesk } from "../useMemoryDesk.ts";
import { memory as words } from "../words/memory.ts";
import { Source } from "./Source.tsx";

export function Earlier({ earlier }: { earlier: readonly MemoryDoc[] }) {
  const memory = useMemoryDesk();
  return (
    <PlainList mt="xs">
      {earlier.map((one) => (
        <Paper key={one.id} component="li" bg="var(--mantine-color-default-hover)" p="sm">
          <Long text={one.text} />
          <Source memory={one} placed={false} />
          <Group justify="end" mt={4}>
            <Button
              size="compact-sm"
              variant="default"
              aria-label={words.useEarlierOf(one.text)}
              onClick={() => void memory((desk) => desk.chooseEarlier(one.id))}
            >
              {words.useEarlier}
            </Button>
          </Group>
        </Paper>
      ))}
    </PlainList>
  );
}
