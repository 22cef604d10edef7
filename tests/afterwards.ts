/** Reset globals, environment and modules after each test file in the same process. Packages stay loaded. */
afterAll(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.resetModules();
});
