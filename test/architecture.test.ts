// Import directions between folders, as a table, checked for every source file.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

/** Top folders that files of each top folder may import; type imports count. */
const mayImport = {
  'universal-row': [],
  'request-units': [],
  'cluster-links': ['universal-row'],
  contracts: ['universal-row'],
  engines: ['contracts', 'universal-row'],
  'storage-node': ['cluster-links', 'contracts', 'engines', 'universal-row', 'request-units'],
  access: ['cluster-links', 'contracts', 'universal-row', 'request-units'],
  control: ['cluster-links', 'contracts', 'universal-row', 'request-units'],
  // The one place that wires all.
  server: [
    'access',
    'cluster-links',
    'contracts',
    'control',
    'engines',
    'request-units',
    'storage-node',
    'universal-row',
  ],
  // The operator's tool; `polyrow start` starts the server.
  cli: [
    'access',
    'cluster-links',
    'contracts',
    'control',
    'engines',
    'request-units',
    'server',
    'storage-node',
    'universal-row',
  ],
} as const satisfies Record<string, readonly string[]>;

type Part = keyof typeof mayImport;
const parts = Object.keys(mayImport) as Part[];

/** Tests and benchmarks may import anything, and nothing else may import them. */
const aside = ['test', 'bench'];

interface Import {
  /** Paths from the root, with `/`. */
  file: string;
  specifier: string;
  /** Where a relative import leads, undefined for a package. */
  target: string | undefined;
}

const isTest = (file: string): boolean => file.endsWith('.test.ts') || aside.includes(topOf(file));
const topOf = (file: string): string => file.split('/')[0]!;

// `import ... from 'x'`, `export ... from 'x'`, `import 'x'`, a dynamic import, a worker's URL.
const importForms = [
  /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]/gm,
  /^\s*import\s*['"]([^'"]+)['"]/gm,
  /\bimport\s*\(\s*['"]([^'"]+)['"]/g,
  /\bnew URL\(\s*['"](\.[^'"]+\.[jt]s)['"],\s*import\.meta\.url/g,
];

function specifiersOf(source: string): string[] {
  const withoutComments = source.replace(/^\s*\/\/.*$/gm, '').replace(/^\s*\/\*[\s\S]*?\*\//gm, '');
  return importForms.flatMap((form) => [...withoutComments.matchAll(form)].map(([, to]) => to!));
}

function importsOf(file: string, source: string): Import[] {
  return specifiersOf(source).map((specifier) => ({
    file,
    specifier,
    target: specifier.startsWith('.')
      ? relative(root, join(root, dirname(file), specifier))
          .split(sep)
          .join('/')
      : undefined,
  }));
}

const files: string[] = [...parts, ...aside]
  // A part that nothing has been written for yet has no folder.
  .filter((top) => existsSync(join(root, top)))
  .flatMap((top) =>
    readdirSync(join(root, top), { recursive: true }).map((name) => `${top}/${String(name)}`),
  )
  .map((file) => file.split(sep).join('/'))
  .filter((file) => file.endsWith('.ts'))
  .sort();
const imports = files.flatMap((file) => importsOf(file, readFileSync(join(root, file), 'utf8')));
const shipped = imports.filter(({ file }) => !isTest(file));

const show = ({ file, specifier }: Import): string => `${file} imports ${specifier}`;

/** Folders each folder imports from, by the files that are not tests. */
function folderGraph(of: readonly Import[]): Map<string, Set<string>> {
  const graph = new Map<string, Set<string>>();
  for (const { file, target } of of) {
    if (target === undefined || topOf(target) === topOf(file)) continue;
    const to = graph.get(topOf(file)) ?? new Set();
    graph.set(topOf(file), to.add(topOf(target)));
  }
  return graph;
}

function findCycle(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const done = new Set<string>();
  const walk = (folder: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(folder)) return [...path.slice(path.indexOf(folder)), folder];
    if (done.has(folder)) return undefined;
    for (const next of graph.get(folder) ?? []) {
      const cycle = walk(next, [...path, folder]);
      if (cycle !== undefined) return cycle;
    }
    done.add(folder);
    return undefined;
  };
  for (const folder of graph.keys()) {
    const cycle = walk(folder, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

function wrongDirections(of: readonly Import[]): string[] {
  return of
    .filter(({ file, target }) => {
      if (target === undefined || topOf(target) === topOf(file)) return false;
      const allowed: readonly string[] = mayImport[topOf(file) as Part] ?? [];
      return !allowed.includes(topOf(target));
    })
    .map(show);
}

// Words by which a source file would show that it knows an engine.
const engineNames = ['MemoryEngine', 'KvEngine', 'TsmEngine', 'classic-level', 'LevelDB'];

describe('imports', () => {
  test('there are files to look at', () => {
    for (const part of ['universal-row', 'engines', 'storage-node', 'access']) {
      expect(files.filter((file) => topOf(file) === part).length, part).toBeGreaterThan(1);
    }
    expect(shipped.filter(({ target }) => target !== undefined).length).toBeGreaterThan(20);
  });

  test('point the way the table says', () => {
    expect(wrongDirections(shipped)).toEqual([]);
  });

  test('of a unit test stay within what its part may know, but for the disk and the engines', () => {
    // A unit test may stand a real neighbour in; it may not reach into a protocol from below.
    const unitTests = imports.filter(({ file }) => isTest(file) && !aside.includes(topOf(file)));
    const wrong = unitTests.filter(
      ({ file, target }) =>
        target !== undefined &&
        topOf(target) === 'access' &&
        !['access', 'server', 'cli'].includes(topOf(file)),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  test('make no circle between the folders', () => {
    expect(findCycle(folderGraph(shipped))).toBeUndefined();
  });

  test('make no cycle between files', () => {
    const graph = new Map<string, Set<string>>();
    for (const { file, target } of imports) {
      if (target === undefined || file === target) continue;
      graph.set(file, (graph.get(file) ?? new Set()).add(target));
    }
    expect(findCycle(graph)).toBeUndefined();
  });

  test('end in .ts and lead to a file', () => {
    const wrong = imports.filter(
      ({ specifier, target }) =>
        target !== undefined &&
        !(specifier.endsWith('.ts') && existsSync(join(root, target))) &&
        !/\.(json|js)$/.test(specifier),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  test('of tests and benchmarks are for tests and benchmarks only', () => {
    const wrong = shipped.filter(({ target }) => target !== undefined && isTest(target));
    expect(wrong.map(show)).toEqual([]);
  });

  test('wire the parts together in server and cli alone', () => {
    const wires = [...folderGraph(shipped)]
      .filter(([, to]) => to.has('access') || to.has('storage-node') || to.has('control'))
      .map(([folder]) => folder);
    expect(wires.filter((folder) => folder !== 'server' && folder !== 'cli')).toEqual([]);
  });
});

describe('engines and protocols', () => {
  test('an engine imports no protocol', () => {
    const wrong = shipped.filter(
      ({ file, target, specifier }) =>
        topOf(file) === 'engines' &&
        ((target !== undefined && topOf(target) === 'access') || /redis|influx/.test(specifier)),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  test('one engine does not import another', () => {
    const folderOf = (path: string) => /^engines\/(memory|kv|tsm)\//.exec(path)?.[1];
    const wrong = shipped.filter(({ file, target }) => {
      const [from, to] = [folderOf(file), target && folderOf(target)];
      return from !== undefined && to !== undefined && from !== to;
    });
    expect(wrong.map(show)).toEqual([]);
  });

  test('access never names an engine', () => {
    const wrong = files
      .filter((file) => topOf(file) === 'access' && !isTest(file))
      .flatMap((file) => {
        const source = readFileSync(join(root, file), 'utf8');
        return engineNames
          .filter((name) => source.includes(name))
          .map((name) => `${file}: ${name}`);
      });
    expect(wrong).toEqual([]);
  });
});

describe('the checks themselves', () => {
  const source = [
    "import { a } from './a.ts';",
    "import type { B } from '../b.ts';",
    'import {',
    '  c,',
    '  type D,',
    "} from '../engines/engine.ts';",
    "export { e } from './e.ts';",
    "export type { F } from './f.ts';",
    "import './g.ts';",
    `const h = await ${'import'}('./h.ts');`,
    "// import { no } from './comment.ts';",
    "const text = 'from here';",
  ].join('\n');

  test('every form of import is found', () => {
    expect(specifiersOf(source).sort()).toEqual([
      '../b.ts',
      '../engines/engine.ts',
      './a.ts',
      './e.ts',
      './f.ts',
      './g.ts',
      './h.ts',
    ]);
  });

  test('a wrong direction is found, a right one is not', () => {
    const of = (file: string, specifier: string) =>
      importsOf(file, `import type { X } from '${specifier}';`);
    expect(wrongDirections(of('access/redis/x.ts', '../../engines/engine.ts'))).toEqual([
      'access/redis/x.ts imports ../../engines/engine.ts',
    ]);
    expect(wrongDirections(of('universal-row/x.ts', '../request-units/y.ts'))).toHaveLength(1);
    expect(wrongDirections(of('engines/kv/x.ts', '../../universal-row/rows.ts'))).toEqual([]);
    expect(wrongDirections(of('engines/kv/x.ts', '../engine.ts'))).toEqual([]);
    expect(wrongDirections(of('engines/kv/x.ts', 'classic-level'))).toEqual([]);
  });

  test('a circle is found', () => {
    const graph = new Map([
      ['a', new Set(['b'])],
      ['b', new Set(['c'])],
      ['c', new Set(['b'])],
    ]);
    expect(findCycle(graph)).toEqual(['b', 'c', 'b']);
    expect(findCycle(new Map([['a', new Set(['b', 'c'])]]))).toBeUndefined();
  });
});
