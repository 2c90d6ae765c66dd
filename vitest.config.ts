import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = import.meta.dirname;
const dist = join(root, 'dist');

/**
 * Where `CI` is set, the tests import the modules that `npm run build` compiled, and Node loads them: vitest would load each
 * of them anew for each test file, and calls between the modules that it loads take longer.
 */
const builtModules = {
  name: 'built-modules',
  enforce: 'pre' as const,
  resolveId(id: string, importer: string | undefined): string | null {
    if (!id.startsWith('.') || !id.endsWith('.ts') || importer === undefined) return null;
    const path = relative(root, join(dirname(importer), id));
    if (path.startsWith('..') || path.startsWith('test/')) return null;
    const built = join(dist, path.replace(/\.ts$/, '.js'));
    return existsSync(built) ? built : null;
  },
};

/** Files that run for minutes. They begin first, as one that began last would run alone at the end. */
const longFiles = [
  'storage-node/replicator/simulation/',
  'test/cluster/linearizability.test.ts',
  'engines/tsm/conformance.test.ts',
  'engines/kv/conformance.test.ts',
  'test/conformance/',
  'storage-node/replicator/engine/wrapper.test.ts',
];

class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = longFiles.findIndex((path) => relative(root, moduleId).startsWith(path));
      return at < 0 ? longFiles.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  plugins: process.env['CI'] ? [builtModules] : [],
  resolve: {
    alias: [
      {
        find: /^fast-check$/,
        replacement: join(root, 'test/support/fast-check.ts'),
      },
    ],
  },
  test: {
    include: ['**/*.test.ts'],
    exclude: ['node_modules/**', 'dist/**'],
    setupFiles: ['fast-equality.ts', 'test-cost.ts'].map((file) =>
      join(root, 'test/support', file),
    ),
    server: { deps: { external: [/\/dist\/.*\.js$/] } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Reached only by what never comes: a busy machine is no failure.
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    sequence: { sequencer: LongFilesFirst },
    // Most files wait for a server most of the time.
    maxWorkers: 3,
  },
});
