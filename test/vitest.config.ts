import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: './harness/embedded-template.ts',
    // Two files at once: `harness/stores.ts` keeps them apart on shared servers, too.
    maxWorkers: 2,
    // Set by `.ci/run`, which tells at its end what passed only at a second try.
    retry: Number(process.env.TEST_RETRIES ?? 0),
    reporters: ['default', './harness/flaky-reporter.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
