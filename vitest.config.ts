import { defineConfig } from "vitest/config";
import Order from "./tests/order.ts";
import { compileCatalog } from "./web/compileCatalog.ts";

/** RxDB's own, and nothing beside it. */
const ADVERTISEMENT = /^-+ RxDB Open Core RxStorage -+\n[^]*\n-{60,}\s*$/u;

const plugins = [compileCatalog({ isSplit: false })];

/** It puts RxDB into its mode for development, which nothing takes back. */
const ALONE = "tests/sync/base.test.ts";

/** What any client of RxDB meets, in the version before the app's as well. */
const CLIENTS = ["converge", "conflicts", "epoch", "limits", "order"].map(
  (name) => `tests/sync/${name}.test.ts`,
);

const each = {
  globals: true, // RxDB's own test suite brings none
  testTimeout: 180_000, // a page on cores that it shares with pytest; what hangs hangs longer
  hookTimeout: 180_000,
  expect: { poll: { timeout: 60_000 } },
};

export default defineConfig({
  test: {
    globalSetup: ["tests/models.ts", "tests/shared.ts"],
    reporters: ["default", "./tests/reporter.ts"],
    onConsoleLog: (text) => !ADVERTISEMENT.test(text),
    maxWorkers: 2, // a file runs a server and browsers: a third was no quicker on two cores
    sequence: { sequencer: Order },
    projects: [
      { plugins, test: { ...each, name: "alone", include: [ALONE] } },
      {
        plugins,
        test: {
          ...{ ...each, name: "together", include: ["tests/**/*.test.ts"], exclude: [ALONE] },
          isolate: false, // Playwright and RxDB take a second to load: once a process is enough
          setupFiles: ["tests/afterwards.ts"],
        },
      },
      {
        plugins,
        resolve: { alias: [{ find: /^rxdb\//, replacement: "rxdb16/" }] },
        test: {
          ...{ ...each, name: "rxdb16", include: CLIENTS, env: { RXDB_VERSION: "16.21.1" } },
          isolate: false,
          setupFiles: ["tests/afterwards.ts"],
        },
      },
    ],
  },
});
