import { Anchor, Skeleton, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { piecesAround, markPiece } from "../../core/documents/documentPages.ts";
import type { Citation } from "../../core/chat/citation.ts";
import { SidePanel } from "../components/SidePanel.tsx";
import { useChunks, useRows } from "../../client/backendClient.tsx";
import { HighlightedText } from "./HighlightedText.tsx";
import { passageLink } from "./passageLink.ts";
import { t } from "../../locale/t.ts";

interface CitationPanelProps {
  citation: Citation;
  onClose: () => void;
}

/** Show the passage of a citation with the text around it. */
export default function CitationPanel({ citation, onClose }: CitationPanelProps) {
  return (
    <SidePanel title={citation.filename} closeLabel={t("reader.closePassage")} onClose={onClose}>
      <Passage citation={citation} />
    </SidePanel>
  );
}

function Passage({ citation }: { citation: Citation }) {
  const rows = useRows("documents", { selector: { id: citation.documentId } });
  const chunks = useChunks(citation.documentId);
  if (!rows || !chunks) return <Skeleton h={240} aria-label={t("reader.loading")} role="status" />;
  if (rows.length === 0) return <Text c="dimmed">{t("reader.documentMissing")}</Text>;
  const index = citation.chunkIndex ?? null;
  const pieces = index === null ? [] : piecesAround(chunks, index);
  return (
    <Stack gap="sm">
      {citation.page !== undefined && (
        <Text size="sm" c="dimmed">
          {t("reader.page", { n: citation.page })}
        </Text>
      )}
      <Anchor component={Link} href={passageLink(citation)} size="sm" py={10}>
        {t("reader.open")}
      </Anchor>
      {pieces.length > 0 ? (
        <HighlightedText filename={citation.filename} text={markPiece(pieces, index)} />
      ) : (
        <Text c="dimmed">{chunks.length > 0 ? t("reader.passageGone") : t("reader.textMissing")}</Text>
      )}
    </Stack>
  );
}
