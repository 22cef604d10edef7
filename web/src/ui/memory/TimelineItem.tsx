import { Anchor, Paper, Text } from "@mantine/core";
import { Link } from "wouter";
import { truncate } from "../../lib/truncate.ts";
import { stripMarkdown } from "../../core/text/stripMarkdown.ts";
import type { TimelineTurn } from "../../backend/api.ts";
import { date, time } from "../../locale/format.ts";

/** Number of characters that are kept of an answer, more than fit into three lines. */
const SHOWN = 1_000;
/** Pattern of a citation number. The timeline does not show citations. */
const CITATION = /(?<!\s)\s*\[\d{1,3}\]/gu;

interface Props {
  turn: TimelineTurn;
  /** The title of the chat. */
  title: string;
  /** Whether to show the date instead of the time. */
  showDate: boolean;
}

/** Show a turn in the timeline, with a link to its place in the chat. */
export function TimelineItem({ turn, title, showDate }: Props) {
  const { id, sessionId, question, text, createdAt } = turn;
  const plain = stripMarkdown(truncate(text, SHOWN)).replace(CITATION, "");
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
        <span dir="auto">{title}</span> · {showDate ? date(createdAt) : time(createdAt)}
      </Text>
    </Paper>
  );
}
