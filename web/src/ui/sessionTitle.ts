import { t } from "../locale/t.ts";

/** Return the title of a chat as the app shows it. A chat without messages has no title. */
export function sessionTitle({ title }: { title: string }): string {
  return title || t("chat.untitled");
}
