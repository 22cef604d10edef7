/** Ids of rows are UUIDv7: they sort by when they were made. */

import { v7 } from "uuid";

export const newId = (): string => v7();
