import type { Notice, NoticeCode } from "../../core/chat/notices.ts";
import { NOTICE_CODES } from "../../core/chat/notices.ts";
import { list } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Return the text of a notice, or null if this version of the app does not know its code. */
export function noticeText({ code, names = [] }: Notice): string | null {
  if (!isKnown(code)) return null;
  return t(`chat.notice.${code}`, { names: list(names), n: names.length });
}

/** Return the texts of all notices of a turn. */
export function noticeTexts(notices: readonly Notice[] = []): string[] {
  return notices.map(noticeText).filter((text) => text !== null);
}

function isKnown(code: string): code is NoticeCode {
  return (NOTICE_CODES as readonly string[]).includes(code);
}
