import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: './harness/embedded-template.ts',
    // Two files at once: `harness/stores.ts` keeps them apart on shared servers, too.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
