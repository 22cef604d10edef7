import { defineConfig } from "vitest/config";
import BrowserFilesFirst from "./tests/sequencer.ts";
import { compileCatalog } from "./web/compileCatalog.ts";

/** RxDB's advertisement on the console. */
const ADVERTISEMENT = /^-+ RxDB Open Core RxStorage -+\n[^]*\n-{60,}\s*$/u;

const plugins = [compileCatalog({ isSplit: false })];

/** This file enables RxDB's development mode, which cannot be disabled again. */
const RXDB_SUITE = "tests/sync/rxdbSuite.test.ts";

/** Tests of plain clients, which also run with the RxDB version before the app's. */
const CLIENTS = ["converge", "conflicts", "epoch", "limits", "parents"].map(
  (name) => `tests/sync/${name}.test.ts`,
);

const common = {
  globals: true, // RxDB's suite expects them
  testTimeout: 180_000, // browsers share the cores with pytest; a hanging test hangs longer
  hookTimeout: 180_000,
  expect: { poll: { timeout: 60_000 } },
};

export default defineConfig({
  test: {
    globalSetup: ["tests/smallModel.ts", "tests/shared.ts"],
    reporters: ["default", "./tests/reporter.ts"],
    onConsoleLog: (text) => !ADVERTISEMENT.test(text),
    maxWorkers: 2, // each file runs a server and browsers; three workers were no faster on two cores
    sequence: { sequencer: BrowserFilesFirst },
    projects: [
      { plugins, test: { ...common, name: "alone", include: [RXDB_SUITE] } },
      {
        plugins,
        test: {
          ...{ ...common, name: "together", include: ["tests/**/*.test.ts"], exclude: [RXDB_SUITE] },
          isolate: false, // Playwright and RxDB take a second to load, so load them once per process
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
