import { Text } from "@mantine/core";
import { CHATS, TextWithChats } from "../components/TextWithChats.tsx";
import { t } from "../../locale/t.ts";

/** Maximum number of linked chats. */
const LINKS_MAX = 3;

/** Show links to some of the chats that use a document, and the number of all others. */
export function UsedIn({ ids, titles }: { ids: readonly string[]; titles: ReadonlyMap<string, string> }) {
  const chats = ids.flatMap((id) => (titles.has(id) ? [{ id, title: titles.get(id)! }] : []));
  const linked = chats.slice(0, LINKS_MAX);
  return (
    <Text size="sm" c="dimmed">
      <TextWithChats text={usageText(ids.length, linked.length)} chats={linked} />
    </Text>
  );
}

function usageText(total: number, linked: number): string {
  if (total === 0) return t("documents.notUsed");
  if (linked === 0) return t("documents.usedInCount", { n: total });
  return total === linked
    ? t("documents.usedIn", { chats: CHATS })
    : t("documents.usedInMore", { chats: CHATS, n: total - linked });
}
