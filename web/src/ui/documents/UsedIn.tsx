import { Anchor, Text } from "@mantine/core";
import { Fragment } from "react";
import { Link } from "wouter";
import { t } from "../../locale/t.ts";

const SHOWN = 3;

/** Show links to the chats that use a document. */
export function UsedIn({ ids, titles }: { ids: readonly string[]; titles: ReadonlyMap<string, string> }) {
  const titled = ids.filter((id) => titles.has(id));
  const more = ids.length - Math.min(SHOWN, titled.length);
  return (
    <Text size="sm" c="dimmed">
      {ids.length === 0 ? t("documents.notUsed") : `${t("documents.usedIn")} `}
      {titled.slice(0, SHOWN).map((id, index) => (
        <Fragment key={id}>
          {index > 0 && ", "}
          <Anchor component={Link} href={`/s/${id}`} size="sm" underline="always" dir="auto">
            {titles.get(id)}
          </Anchor>
        </Fragment>
      ))}
      {more > 0 && ids.length > 0 && `${titled.length > 0 ? ", " : ""}${t("common.more", { n: more })}`}
    </Text>
  );
}
