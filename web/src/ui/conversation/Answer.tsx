import { Typography } from "@mantine/core";
import { memo, useEffect, useMemo, useState, type MouseEvent } from "react";
import type { Citation } from "../../core/chat/citation.ts";
import { sourceName } from "./sourceName.ts";
import { SlicedRenderer } from "./slicedRenderer.ts";
import { safeHtmlOf, toSafeHtml } from "./markdown.ts";
import style from "./Answer.module.css";

/**
 * Number of characters above which a text is rendered in slices, because rendering takes longer than a frame.
 */
const LONG = 5_000;

interface Props {
  text: string;
  citations: readonly Citation[];
  isQuotes?: boolean;
  onCitation(citation: Citation): void;
}

/** Show an answer as Markdown. The citations of a quotation answer are buttons. */
export function Answer({ text, citations, isQuotes = false, onCitation }: Props) {
  const pieces = usePieces(text, citations, isQuotes);

  function onClick(event: MouseEvent) {
    const button = (event.target as Element).closest<HTMLElement>("[data-citation]");
    const citation = button && citations[Number(button.dataset["citation"])];
    if (citation) onCitation(citation);
  }

  return (
    <Typography className={style["answer"]} onClick={onClick} dir="auto">
      {pieces.map((html, index) => (
        <Piece key={index} html={html} />
      ))}
    </Typography>
  );
}

const Piece = memo(function Piece({ html }: { html: string }) {
  return <div className={style["piece"]} dangerouslySetInnerHTML={{ __html: html }} />;
});

/** Return the safe HTML of a text. The HTML of a long text arrives piece by piece. */
function usePieces(text: string, citations: readonly Citation[], isQuotes: boolean): readonly string[] {
  const sources = useMemo(() => citations.map(sourceName), [citations]);
  const isLong = text.length > LONG;
  const short = useMemo(
    () => (isLong ? undefined : toSafeHtml(text, sources, isQuotes)),
    [isLong, text, sources, isQuotes],
  );
  const [rendered, setRendered] = useState<readonly string[]>([]);
  const [renderer] = useState(
    () =>
      new SlicedRenderer((pieces, isComplete) =>
        setRendered((before) => (isComplete ? pieces : [...pieces, ...before.slice(pieces.length)])),
      ),
  );
  if (short && short !== rendered) setRendered(short); // shown while a growing text becomes long
  useEffect(() => {
    const fail = (error: unknown) =>
      setRendered(() => {
        throw error; // in the render phase, where the error boundary catches it
      });
    if (isLong) renderer.render(safeHtmlOf(text, sources, isQuotes)).catch(fail);
    else renderer.stop();
  }, [renderer, isLong, text, sources, isQuotes]);
  useEffect(() => () => renderer.stop(), [renderer]);
  return short ?? rendered;
}
