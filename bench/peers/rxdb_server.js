'use strict';
/**
 * rxdb-server on RxDB's memory storage, started by bench/targets/rxdb.py. It is used only as an installed package.
 * Arguments: port, number of users, mode.
 * Rows are not validated, and the limit for bodies is above the default of 100 kB.
 * Mode bare: one collection per user (at most 16) and no accounts, which is the fastest configuration.
 * Mode shared: one collection for all users and no accounts. All users see all rows, so pulls are not comparable.
 * Mode accounts: one collection for all users. Each user sees and writes only their own rows.
 */
const { createRequire } = require('node:module');

const need = createRequire(`${process.env.BENCH_PEERS}/package.json`);
const express = need('express');
const { createRxDatabase } = need('rxdb/plugins/core');
const { getRxStorageMemory } = need('rxdb/plugins/storage-memory');
const { createRxServer } = need('rxdb-server/plugins/server');
const { RxServerAdapterExpress } = need('rxdb-server/plugins/adapter-express');

const text = { type: 'string' };
const common = { id: { type: 'string', maxLength: 100 }, createdAt: text, updatedAt: text, owner: text };

function schema(properties) {
  return { version: 0, primaryKey: 'id', type: 'object', properties: { ...common, ...properties }, required: ['id'] };
}

const episode = schema({
  sessionId: text, userMessage: text, aiResponse: text, status: text,
  citations: { type: 'array', items: { type: 'object' } },
});
const block = schema({
  documentId: text, block: { type: 'number' }, model: text, dims: { type: 'number' }, embedding: text,
  chunks: { type: 'array', items: { type: 'object' } },
});

const accounts = {
  authHandler: (headers) => {
    if (!headers['x-user']) throw new Error('no user');
    return { data: headers['x-user'], validUntil: Date.now() + 3600_000 };
  },
  queryModifier: (auth, query) => {
    query.selector.owner = { $eq: auth.data };
    return query;
  },
  changeValidator: (auth, change) => change.newDocumentState.owner === auth.data,
};

async function main(port, users, mode) {
  const shared = mode !== 'bare';
  const guarded = mode === 'accounts';
  const database = await createRxDatabase({ name: 'bench', storage: getRxStorageMemory(), multiInstance: false });
  const wanted = { vectors: { schema: block } };
  for (let user = 0; user < (shared ? 1 : users); user += 1) wanted[`episodes${user}`] = { schema: episode };
  const collections = await database.addCollections(wanted);
  const serverApp = express();
  serverApp.use(express.json({ limit: '32mb' }));
  const server = await createRxServer({
    database,
    adapter: RxServerAdapterExpress,
    serverApp,
    hostname: '127.0.0.1',
    port,
    authHandler: guarded ? accounts.authHandler : undefined,
  });
  const { queryModifier, changeValidator } = guarded ? accounts : {};
  for (const [name, collection] of Object.entries(collections)) {
    server.addReplicationEndpoint({ name, collection, queryModifier, changeValidator });
  }
  await server.start();
}

main(Number(process.argv[2]), Number(process.argv[3]), process.argv[4]).catch((error) => {
  console.error(error);
  process.exit(1);
});
