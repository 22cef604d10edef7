/** Sentences of what the app itself refuses, by their codes. Short and concrete. */

import type { Code } from "../../core/errors.ts";
import { places } from "./places.ts";

export const problems: Record<Code, string> = {
  FULL: "This browser has no room left. Nothing was stored.",
  NEWER_FORM: places.outdated,
  NOT_CARRIED_OVER: places.notCarriedOver,
  OPEN_ELSEWHERE:
    "Another tab of this browser still has this account open. Nothing was removed: close that tab and try again.",
  UNLOADED:
    "The part of the app that does this could not be loaded. Nothing was changed: load the page again, then try again.",
  OTHER_ACCOUNT: "This address belongs to another account by now. Nothing was changed.",
  ROW_GONE: "What this was a part of is not here any more. Your words stay until you dismiss them.",
};
