/** Reset modules and globals after each test file, because the next file runs in the same process. */
afterAll(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.resetModules();
});
