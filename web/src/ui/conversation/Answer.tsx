/** What was answered, as Markdown, with a small number for every citation. */

import { Typography } from "@mantine/core";
import { memo, useEffect, useMemo, useState, type MouseEvent } from "react";
import type { Citation } from "../../core/chat/citation.ts";
import { sourceName } from "./sourceName.ts";
import { Drawing } from "./drawing.ts";
import { safeHtmlOf, toSafeHtml } from "./markdown.ts";
import style from "./Answer.module.css";

const LONG = 5_000; // characters: to draw it takes more than a frame

interface Props {
  text: string;
  citations: readonly Citation[];
  isQuotes?: boolean;
  onCitation(citation: Citation): void;
}

export function Answer({ text, citations, isQuotes = false, onCitation }: Props) {
  const pieces = usePieces(text, citations, isQuotes);

  function onClick(event: MouseEvent) {
    const button = (event.target as Element).closest<HTMLElement>("[data-citation]");
    const citation = button && citations[Number(button.dataset["citation"])];
    if (citation) onCitation(citation);
  }

  return (
    <Typography className={style["answer"]} onClick={onClick} dir="auto">
      {pieces.map((html, at) => (
        <Piece key={at} html={html} />
      ))}
    </Typography>
  );
}

const Piece = memo(function Piece({ html }: { html: string }) {
  return <div className={style["piece"]} dangerouslySetInnerHTML={{ __html: html }} />;
});

/** Return the safe HTML of a text, in pieces that come one after the other if it is long. */
function usePieces(text: string, citations: readonly Citation[], isQuotes: boolean): readonly string[] {
  const sources = useMemo(() => citations.map(sourceName), [citations]);
  const isLong = text.length > LONG;
  const short = useMemo(
    () => (isLong ? undefined : toSafeHtml(text, sources, isQuotes)),
    [isLong, text, sources, isQuotes],
  );
  const [drawn, setDrawn] = useState<readonly string[]>([]);
  const [drawing] = useState(
    () =>
      new Drawing((pieces, isAll) =>
        setDrawn((before) => (isAll ? pieces : [...pieces, ...before.slice(pieces.length)])),
      ),
  );
  if (short && short !== drawn) setDrawn(short); // until more of a text that grows is drawn
  useEffect(() => {
    const fail = (error: unknown) =>
      setDrawn(() => {
        throw error;
      });
    if (isLong) drawing.draw(safeHtmlOf(text, sources, isQuotes)).catch(fail);
    else drawing.stop();
  }, [drawing, isLong, text, sources, isQuotes]);
  useEffect(() => () => drawing.stop(), [drawing]);
  return short ?? drawn;
}
