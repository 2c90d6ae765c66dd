import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const ignored = ['node_modules/**', 'dist/**'];
/** Unit tests that need a new process: one counts the blocks of code that V8 runs, one tests a thread's first write. */
const first = [
  'access/influx/line-protocol/line-parser.fuzz.test.ts',
  'cluster-links/direct-write.test.ts',
];

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
          exclude: [...ignored, ...first, 'test/**'],
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'whole', include: ['test/**/*.test.ts', ...first], exclude: ignored },
      },
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
