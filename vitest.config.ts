import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const ignored = ['node_modules/**', 'dist/**'];
/**
 * Tests that get a process of their own: those of the whole server; those of engines and pods, whose random histories run
 * half as fast in a process whose code other tests have used with other types; and two that need a new process, as one
 * counts the blocks of code that V8 runs and one tests a thread's first write.
 */
const isolated = [
  'test/**/*.test.ts',
  'engines/**/*.test.ts',
  'storage-node/**/*.test.ts',
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
      // One after the other in a process: most of their time would go into starting processes and loading modules.
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['**/*.test.ts'],
          exclude: [...ignored, ...isolated],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'isolated', include: isolated, exclude: ignored } },
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
