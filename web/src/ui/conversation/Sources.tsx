/** Where an answer comes from: each place once. */

import { Button, Group, Text } from "@mantine/core";
import type { Citation } from "../../model/citation.ts";
import { words } from "../words.ts";

const SHOWN = 6;

interface Props {
  citations: readonly Citation[];
  onCitation(citation: Citation): void;
}

export function Sources({ citations, onCitation }: Props) {
  const places = new Map(citations.map((citation) => [words.conversation.source(citation), citation]));
  if (places.size === 0) return null;
  return (
    <Group gap={4} mt="xs" role="group" aria-label={words.conversation.sources}>
      {[...places].slice(0, SHOWN).map(([label, citation]) => (
        <Button
          key={label}
          size="compact-xs"
          radius="xl"
          variant="light"
          maw="min(18rem, 100%)"
          styles={{ root: { gridTemplateColumns: "minmax(0, 1fr)" } }} // a long name ends in three dots
          title={label}
          onClick={() => onCitation(citation)}
        >
          <Text span inherit truncate>
            {label}
          </Text>
        </Button>
      ))}
    </Group>
  );
}
