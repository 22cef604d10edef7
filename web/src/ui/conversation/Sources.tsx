import { Button, Group, Text } from "@mantine/core";
import type { Citation } from "../../core/chat/citation.ts";
import { sourceName } from "./sourceName.ts";
import { groupBy } from "../../lib/groupBy.ts";

const SHOWN = 6;

interface Props {
  label: string;
  citations: readonly Citation[];
  onCitation(citation: Citation): void;
}

/** Show passages below an answer: a button for each page of a document, which opens the first passage of the page. */
export function Sources({ label: title, citations, onCitation }: Props) {
  const sources = groupBy(citations, sourceName);
  if (sources.size === 0) return null;
  return (
    <Group gap={4} mt="xs" role="group" aria-label={title}>
      <Text size="xs" c="dimmed" aria-hidden>
        {title}
      </Text>
      {[...sources].slice(0, SHOWN).map(([label, [best]]) => (
        <Button
          key={label}
          size="compact-xs"
          radius="xl"
          variant="light"
          maw="min(18rem, 100%)"
          styles={{ root: { gridTemplateColumns: "minmax(0, 1fr)" } }} // so that a long name is truncated
          title={label}
          onClick={() => onCitation(best!)}
        >
          <Text span inherit truncate>
            {label}
          </Text>
        </Button>
      ))}
    </Group>
  );
}
