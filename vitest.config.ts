import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const ignored = ['node_modules/**', 'dist/**'];

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
    projects: [
      // Beside the code: in one process after the other, as most of their time would go into starting processes and
      // loading modules.
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...ignored, 'test/**'],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'whole', include: ['test/**/*.test.ts'], exclude: ignored } },
    ],
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
