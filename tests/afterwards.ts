/** The next file in the same process has its own modules, and the globals and environment of Node; packages stay loaded. */
afterAll(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.resetModules();
});
