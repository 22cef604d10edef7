/** Row ids. They are UUIDv7, so they sort by creation time. */

import { v7 } from "uuid";

export const newId = (): string => v7();
