import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: {
    alias: [
      {
        find: /^fast-check$/,
        replacement: join(import.meta.dirname, 'test/support/fast-check.ts'),
      },
    ],
  },
  test: {
    include: ['**/*.test.ts'],
    exclude: ['node_modules/**', 'dist/**'],
    setupFiles: ['fast-equality.ts', 'test-cost.ts'].map((file) =>
      join(import.meta.dirname, 'test/support', file),
    ),
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Reached only by what never comes: a busy machine is no failure.
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    // Most files wait for a server most of the time.
    maxWorkers: 3,
  },
});
