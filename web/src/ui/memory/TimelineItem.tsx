import { Anchor, Paper, Text } from "@mantine/core";
import { Link } from "wouter";
import { truncate } from "../../lib/truncate.ts";
import { stripMarkdown } from "../../core/text/stripMarkdown.ts";
import type { TimelineTurn } from "../../backend/api.ts";
import { date, time } from "../../locale/format.ts";

/** Length in characters to which an answer is truncated: more than fits into the three visible lines. */
const SHOWN = 1_000;
/** Pattern of a citation number and the space before it, which are removed because the timeline shows no sources. */
const CITATION = /(?<!\s)\s*\[\d{1,3}\]/gu;

interface Props {
  turn: TimelineTurn;
  /** The title of the chat. */
  title: string;
  /** Whether to show the date instead of the time. */
  showDate: boolean;
}

/** Show a turn in the timeline, with a link to the turn in its chat. */
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
