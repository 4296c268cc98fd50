import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Files share the machine's two stores in turn.
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
