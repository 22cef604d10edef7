/** The passage behind a citation, on its page. Load it lazily. */

import { Anchor, Skeleton, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { around, marked } from "../../model/pages.ts";
import type { Citation } from "../../model/citation.ts";
import { Beside } from "../Beside.tsx";
import { useChunks, useRows } from "../desk.tsx";
import { reading } from "../words/reading.ts";
import { MarkedText } from "./MarkedText.tsx";
import { passageLink } from "./passageLink.ts";

interface PassageProps {
  citation: Citation;
  onClose: () => void;
}

export default function Passage({ citation, onClose }: PassageProps) {
  return (
    <Beside title={citation.filename} close={reading.close} onClose={onClose}>
      <Cited citation={citation} />
    </Beside>
  );
}

function Cited({ citation }: { citation: Citation }) {
  const rows = useRows("documents", { selector: { id: citation.documentId } });
  const chunks = useChunks(citation.documentId);
  if (!rows || !chunks) return <Skeleton h={240} aria-label={reading.loading} role="status" />;
  if (rows.length === 0) return <Text c="dimmed">{reading.gone}</Text>;
  const index = citation.chunkIndex ?? null;
  const pieces = index === null ? [] : around(chunks, index);
  return (
    <Stack gap="sm">
      {citation.page !== undefined && (
        <Text size="sm" c="dimmed">
          {reading.page(citation.page)}
        </Text>
      )}
      <Anchor component={Link} href={passageLink(citation)} size="sm" py={10}>
        {reading.open}
      </Anchor>
      {pieces.length > 0 ? (
        <MarkedText filename={citation.filename} text={marked(pieces, index)} />
      ) : (
        <Text c="dimmed">{chunks.length > 0 ? reading.passageGone : reading.textComing}</Text>
      )}
    </Stack>
  );
}
