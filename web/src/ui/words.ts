/** Every sentence of what is loaded at once, by the place where it is read. Pages bring theirs along (words/). */

import { conversation } from "./words/conversation.ts";
import { places } from "./words/places.ts";
import { sync } from "./words/sync.ts";

export const words = { places, conversation, sync } as const;
