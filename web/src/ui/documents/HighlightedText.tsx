import { Text } from "@mantine/core";
import { useEffect, useRef } from "react";
import type { MarkedText } from "../../core/documents/documentPages.ts";
import { stripMarkdownOf } from "../../core/text/stripMarkdown.ts";
import classes from "./documents.module.css";
import { t } from "../../locale/t.ts";

/** Show a text with a highlighted passage, and scroll to the passage. */
export function HighlightedText({ filename, text }: { filename: string; text: MarkedText }) {
  const [before, passage, after] = stripMarkdownOf(filename, text.before, text.passage, text.after);
  const mark = useRef<HTMLElement>(null);
  useEffect(() => {
    // In braces, because newer browsers return a promise, which an effect must not return.
    mark.current?.scrollIntoView({ block: "center" });
  }, [passage]);
  return (
    <Text component="div" className={classes.text} dir="auto">
      {before}
      {passage && (
        <mark ref={mark} aria-label={t("reader.passage")}>
          {passage}
        </mark>
      )}
      {after}
    </Text>
  );
}
