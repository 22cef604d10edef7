import { defineConfig } from "vitest/config";
import Order from "./tests/order.ts";

/** RxDB's own, and nothing beside it. */
const ADVERTISEMENT = /^-+ RxDB Open Core RxStorage -+\n[^]*\n-{60,}\s*$/u;

export default defineConfig({
  test: {
    globals: true, // RxDB's own test suite brings none
    globalSetup: ["tests/models.ts", "tests/shared.ts"],
    reporters: ["default", "./tests/reporter.ts"],
    include: ["tests/**/*.test.ts"],
    onConsoleLog: (text) => !ADVERTISEMENT.test(text),
    testTimeout: 180_000, // a page on cores that it shares with pytest; what hangs hangs longer
    hookTimeout: 180_000,
    maxWorkers: 2, // a file runs a server and browsers
    sequence: { sequencer: Order },
  },
});
