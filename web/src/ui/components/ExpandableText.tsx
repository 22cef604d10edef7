import { Button, Text, type TextProps } from "@mantine/core";
import { useState } from "react";
import { truncate } from "../../lib/truncate.ts";
import { t } from "../../locale/t.ts";

/** Length in characters to which a long text is truncated. */
const SHOWN = 1_000;
/**
 * Length in characters above which a text is truncated. The limit is above `SHOWN`, because the button that expands a
 * text takes as much space as a few hundred characters.
 */
const LONG = 1_500;

/** Show a text with its line breaks. Of a long text, show only the start until the user expands it. */
export function ExpandableText({ text, ...props }: { text: string } & TextProps) {
  const [expanded, setExpanded] = useState(false);
  const isLong = text.length > LONG;
  return (
    <>
      <Text dir="auto" style={{ whiteSpace: "pre-wrap" }} {...props}>
        {isLong && !expanded ? `${truncate(text, SHOWN)}…` : text}
      </Text>
      {isLong && (
        <Button size="compact-sm" variant="subtle" ms={-8} onClick={() => setExpanded(!expanded)}>
          {expanded ? t("common.showLess") : t("common.showAll", { n: text.length })}
        </Button>
      )}
    </>
  );
}
