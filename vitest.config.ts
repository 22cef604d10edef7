import { defineConfig } from "vitest/config";
import BrowserFilesFirst from "./tests/sequencer.ts";
import { compileCatalog } from "./web/compileCatalog.ts";

/** Pattern of RxDB's advertisement, which is kept out of the output of tests. */
const ADVERTISEMENT = /^-+ RxDB Open Core RxStorage -+\n[^]*\n-{60,}\s*$/u;

const plugins = [compileCatalog({ isSplit: false })];

/** This test file runs in its own process: it enables RxDB's development mode, which cannot be disabled again. */
const RXDB_SUITE = "tests/sync/rxdbSuite.test.ts";

/** Tests of clients without the app. They run with the app's version of RxDB and with the previous major version. */
const CLIENTS = ["converge", "conflicts", "epoch", "limits", "parents"].map(
  (name) => `tests/sync/${name}.test.ts`,
);

const common = {
  globals: true, // RxDB's own test suite needs them
  testTimeout: 180_000, // long, because browsers are slow on busy cores
  hookTimeout: 180_000,
  expect: { poll: { timeout: 60_000 } },
};

export default defineConfig({
  test: {
    globalSetup: ["tests/smallModel.ts", "tests/shared.ts"],
    reporters: ["default", "./tests/reporter.ts"],
    onConsoleLog: (text) => !ADVERTISEMENT.test(text),
    maxWorkers: 2, // a worker runs a server and browsers, and three workers were not faster on two cores
    sequence: { sequencer: BrowserFilesFirst },
    projects: [
      { plugins, test: { ...common, name: "alone", include: [RXDB_SUITE] } },
      {
        plugins,
        test: {
          ...{ ...common, name: "together", include: ["tests/**/*.test.ts"], exclude: [RXDB_SUITE] },
          isolate: false, // load Playwright and RxDB, which takes a second, once per process and not per file
          setupFiles: ["tests/resetModules.ts"],
        },
      },
      {
        plugins,
        resolve: { alias: [{ find: /^rxdb\//, replacement: "rxdb16/" }] },
        test: {
          ...{ ...common, name: "rxdb16", include: CLIENTS, env: { RXDB_VERSION: "16.21.1" } },
          isolate: false,
          setupFiles: ["tests/resetModules.ts"],
        },
      },
    ],
  },
});
