/** What somebody or some program wrote, as it was written: of what would fill the page only the beginning, until all is wanted. */

import { Button, Text, type TextProps } from "@mantine/core";
import { useState } from "react";
import { beginning } from "../../lib/truncate.ts";
import { t } from "../../locale/t.ts";

const SHOWN = 1_000;
/** A text that is a little longer is shown whole: the button would take as much room. */
const LONG = 1_500;

export function ExpandableText({ text, ...props }: { text: string } & TextProps) {
  const [all, setAll] = useState(false);
  const isLong = text.length > LONG;
  return (
    <>
      <Text dir="auto" style={{ whiteSpace: "pre-wrap" }} {...props}>
        {isLong && !all ? `${beginning(text, SHOWN)}…` : text}
      </Text>
      {isLong && (
        <Button size="compact-sm" variant="subtle" ms={-8} onClick={() => setAll(!all)}>
          {all ? t("common.showLess") : t("common.showAll", { n: text.length })}
        </Button>
      )}
    </>
  );
}
