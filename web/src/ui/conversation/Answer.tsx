import { Typography } from "@mantine/core";
import { memo, useEffect, useMemo, useState, type MouseEvent } from "react";
import type { Citation } from "../../core/chat/citation.ts";
import { sourceName } from "./sourceName.ts";
import { SlicedRenderer } from "./slicedRenderer.ts";
import { safeHtmlOf, toSafeHtml } from "./markdown.ts";
import style from "./Answer.module.css";

/** Length in characters above which a text is rendered in slices, because one pass would take longer than a frame. */
const LONG = 5_000;

interface Props {
  text: string;
  citations: readonly Citation[];
  isQuotes?: boolean;
  onCitation(citation: Citation): void;
}

/** Render the Markdown of an answer. Its citations become buttons. */
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

/**
 * Return the safe HTML of a text in pieces. A long text is rendered in slices: until all of its pieces are rendered,
 * pieces of the previous text follow the rendered ones.
 */
function usePieces(text: string, citations: readonly Citation[], isQuotes: boolean): readonly string[] {
  const sources = useMemo(
    () => citations.map((citation) => ({ n: citation.n, name: sourceName(citation) })),
    [citations],
  );
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
  // When the text grows beyond `LONG`, these pieces stay visible until new ones are rendered.
  if (short && short !== rendered) setRendered(short);
  useEffect(() => {
    const fail = (error: unknown) =>
      setRendered(() => {
        throw error; // thrown during rendering, so that the error boundary catches it
      });
    if (isLong) renderer.render(safeHtmlOf(text, sources, isQuotes)).catch(fail);
    else renderer.stop();
  }, [renderer, isLong, text, sources, isQuotes]);
  useEffect(() => () => renderer.stop(), [renderer]);
  return short ?? rendered;
}
