'use strict';
/**
 * express-pouchdb on leveldb, started by bench/targets/pouch.py. Arguments: port, database folder.
 * The mode is the package's default, in which it has accounts, validates rows and writes a log.
 */
const { createRequire } = require('node:module');
const path = require('node:path');

const need = createRequire(`${process.env.BENCH_PEERS}/package.json`);
const express = need('express');
const PouchDB = need('pouchdb').defaults({ prefix: path.join(process.argv[3], path.sep) });

const app = express();
const options = { mode: 'fullCouchDB', inMemoryConfig: true, logPath: path.join(process.argv[3], 'log.txt') };
app.use('/', need('express-pouchdb')(PouchDB, options));
app.listen(Number(process.argv[2]), '127.0.0.1');
