/** One turn of the timeline; it opens in its conversation. */

import { Anchor, Paper, Text } from "@mantine/core";
import { Link } from "wouter";
import { beginning } from "../../lib/truncate.ts";
import { readable } from "../../core/text/stripMarkdown.ts";
import type { TimelineTurn } from "../../backend/memory/timeline.ts";
import { date, time } from "../../locale/format.ts";

/** More than three lines hold. */
const SHOWN = 1_000;
/** A number that names a source, which is not shown here. */
const CITED = /(?<!\s)\s*\[\d{1,3}\]/gu;

interface Props {
  turn: TimelineTurn;
  /** Of its conversation. */
  title: string;
  /** Whether its day is named. */
  dated: boolean;
}

export function TimelineItem({ turn: { id, sessionId, question, text, createdAt }, title, dated }: Props) {
  const at = time(createdAt);
  const plain = readable(beginning(text, SHOWN)).replace(CITED, "");
  return (
    <Paper component="li" withBorder p="sm">
      <Anchor
        component={Link}
        href={`/s/${sessionId}?turn=${encodeURIComponent(id)}`}
        fw={600}
        dir="auto"
        lineClamp={2}
      >
        {question || plain}
      </Anchor>
      <Text size="sm" lineClamp={3} dir="auto">
        {plain}
      </Text>
      <Text size="xs" c="dimmed" mt={4}>
        <span dir="auto">{title}</span> · {dated ? date(createdAt) : at}
      </Text>
    </Paper>
  );
}
