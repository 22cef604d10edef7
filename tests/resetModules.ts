/** Reset modules and globals after each file, because the next file runs in the same process. Packages stay loaded. */
afterAll(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.resetModules();
});
