/** Paths of the sync protocol, and the fields that schema version 1 requires in addition to version 0. */

import { schemas } from "../../web/src/storage/schemas.ts";

const versions: Record<string, { version: number } | undefined> = schemas;

/** Return the current schema version of a collection. Unknown collections have version 0. */
export const versionOf = (collection: string) => versions[collection]?.version ?? 0;

export const syncPath = (collection: string) => `/v1/sync/${collection}/${versionOf(collection)}`;

export const NEW_DOCUMENT_FIELDS = { textHash: "", original: "none", fileRevision: 1 };
export const NEW_SESSION_FIELDS = { documentScope: "chosen", memory: "on" };
