'use strict';
/**
 * express-pouchdb on leveldb, started by bench/targets/pouch.py. Arguments: port, folder of the databases, mode.
 * Modes are the package's own: fullCouchDB (its default: accounts, validation, log) or minimumForPouchDB.
 */
const { createRequire } = require('node:module');
const path = require('node:path');

const need = createRequire(`${process.env.BENCH_PEERS}/package.json`);
const express = need('express');
const PouchDB = need('pouchdb').defaults({ prefix: path.join(process.argv[3], path.sep) });

const app = express();
const options = { mode: process.argv[4], inMemoryConfig: true, logPath: path.join(process.argv[3], 'log.txt') };
app.use('/', need('express-pouchdb')(PouchDB, options));
app.listen(Number(process.argv[2]), '127.0.0.1');
