/** Run RxDB's own replication suite against a server, without its cases for attachments, which the protocol lacks. */

import { addRxPlugin } from "rxdb/plugins/core";
import { disableWarnings, RxDBDevModePlugin } from "rxdb/plugins/dev-mode";
import { getRxStorageMemory } from "rxdb/plugins/storage-memory";
import { runReplicationBaseTestSuite, setConfig } from "rxdb/plugins/test-utils";
import { wrappedValidateAjvStorage } from "rxdb/plugins/validate-ajv";
import type { User } from "./harness.ts";
import { replicatePlain } from "./plainClient.ts";
import { harness, withServer } from "./setup.ts";

disableWarnings();
addRxPlugin(RxDBDevModePlugin);
const storage = wrappedValidateAjvStorage({ storage: getRxStorageMemory() });
setConfig({
  storage: {
    name: "memory",
    getStorage: () => storage,
    getPerformanceStorage: () => ({ storage, description: "memory" }),
    hasPersistence: false,
    hasMultiInstance: false,
    hasAttachments: false,
    hasReplication: true,
  },
} as never);

let user: User;
withServer();

describe("RxDB's replication suite", () => {
  const endpoint = () => ({ url: harness.url, token: user.token });
  runReplicationBaseTestSuite({
    startReplication: (collection) => replicatePlain(collection, "humans", endpoint()),
    syncOnce: async (collection) => {
      const state = replicatePlain(collection, "humans", endpoint(), false);
      await state.awaitInitialReplication();
    },
    getAllServerDocs: () => harness.rows(user, "humans"),
    cleanUpServer: async () => void (user = await harness.user()),
    softDeletes: true,
    isDeleted: (row) => row._deleted,
    getPrimaryOfServerDoc: (row) => row.passportId,
  });
});
