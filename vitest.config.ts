import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globals: true, // RxDB's own test suite brings none
    include: ["tests/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false, // each file runs a server; two cores
  },
});
