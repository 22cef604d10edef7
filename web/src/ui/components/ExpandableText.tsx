import { Button, Text, type TextProps } from "@mantine/core";
import { useState } from "react";
import { truncate } from "../../lib/truncate.ts";
import { t } from "../../locale/t.ts";

/** Number of characters that are shown of a long text. */
const SHOWN = 1_000;
/**
 * Maximum length of texts that are shown in full, because the button would take as much space as the rest.
 */
const LONG = 1_500;

/** Show a text as it was written. Only the start of a long text is shown until the user expands it. */
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
