/** What was answered, as Markdown, with a small number for every citation. */

import { Typography } from "@mantine/core";
import { useMemo, type MouseEvent } from "react";
import type { Citation } from "../../model/citation.ts";
import { words } from "../words.ts";
import { toSafeHtml } from "./markdown.ts";
import style from "./Answer.module.css";

interface Props {
  text: string;
  citations: readonly Citation[];
  isQuotes?: boolean;
  onCitation(citation: Citation): void;
}

export function Answer({ text, citations, isQuotes = false, onCitation }: Props) {
  const html = useMemo(
    () => toSafeHtml(text, citations.map(words.conversation.source), isQuotes),
    [text, citations, isQuotes],
  );

  function onClick(event: MouseEvent) {
    const button = (event.target as Element).closest<HTMLElement>("[data-citation]");
    const citation = button && citations[Number(button.dataset["citation"])];
    if (citation) onCitation(citation);
  }

  return (
    <Typography
      className={style["answer"]}
      onClick={onClick}
      dangerouslySetInnerHTML={{ __html: html }}
      dir="auto"
    />
  );
}
