// The installed package: its files, its install scripts, and the bill of materials.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const isBuilt = existsSync(join(root, 'dist/cli/main.js'));

function npm(...words: string[]): string {
  return execFileSync('npm', words, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
}

interface LockedPackage {
  version: string;
  dev?: boolean;
  peer?: boolean;
  optional?: boolean;
  devOptional?: boolean;
  hasInstallScript?: boolean;
}

function locked(): [string, LockedPackage][] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>;
  };
  return Object.entries(lock.packages).filter(([path]) => path !== '');
}

test('classic-level alone runs anything while it is installed', () => {
  const scripts = locked().filter(([, { hasInstallScript }]) => hasInstallScript);
  expect(scripts.map(([path]) => path)).toEqual(['node_modules/classic-level']);
});

// Not with --omit dev: npm then leaves out packages that are needed for development, too.
test('the bill of materials names every package, and which are for development alone', () => {
  const sbom = JSON.parse(npm('sbom', '--sbom-format', 'cyclonedx', '--package-lock-only')) as {
    bomFormat: string;
    components: { purl: string; properties?: { name: string; value: string }[] }[];
  };
  expect(sbom.bomFormat).toBe('CycloneDX');
  const known = new Map(
    sbom.components.map(({ purl, properties = [] }) => [
      decodeURIComponent(purl.split('?')[0]!),
      properties.some(({ name }) => name === 'cdx:npm:package:development'),
    ]),
  );
  for (const [path, { version, dev = false, peer, optional, devOptional }] of locked()) {
    if (peer === true || optional === true || devOptional === true) continue;
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    expect([name, known.get(`pkg:npm/${name}@${version}`)]).toEqual([name, dev]);
  }
});

describe.skipIf(!isBuilt)('the package', () => {
  let files: Set<string>;

  beforeAll(() => {
    // Without the scripts of a real one: they build again, under the feet of other tests.
    const packed = npm('pack', '--dry-run', '--json', '--ignore-scripts');
    const [{ files: all }] = JSON.parse(packed) as [{ files: { path: string }[] }];
    files = new Set(all.map(({ path }) => path));
  });

  test('holds only what a user needs', () => {
    const places = new Set([...files].map((file) => file.split('/')[0]!));
    expect([...places].sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'dist',
      'docs',
      'package.json',
    ]);
    const unwanted =
      /\.map$|\.ts$|\.test\.|fixture|conformance|\/testing\/|^dist\/(bench|test)\/|node_modules|\.env/;
    expect([...files].filter((file) => unwanted.test(file))).toEqual([]);
  });

  test('has every file that the command can load', () => {
    const entries = [
      'cli/main.js',
      'cli/demo/load/load-process.js',
      'server/planes/redis-plane.js',
      'server/planes/influx-plane.js',
    ];
    const found = new Set<string>();
    const look = (file: string): void => {
      if (found.has(file)) return;
      found.add(file);
      const text = readFileSync(join(root, file), 'utf8');
      for (const [, path] of text.matchAll(/(?:from|import|URL)[\s(]*['"](\.[^'"]+\.js)['"]/g)) {
        look(relative(root, join(root, dirname(file), path!)));
      }
    };
    for (const entry of entries) look(`dist/${entry}`);
    expect(found.size).toBeGreaterThan(100);
    expect([...found].filter((file) => !files.has(file))).toEqual([]);
  });

  test.each(['raft.wasm.br', 'raft.wasm.sha256', 'NOTICE', 'LICENSE.etcd-raft', 'LICENSE.go'])(
    'has the consensus engine: %s',
    (name) => {
      expect(files).toContain(`dist/storage-node/replicator/engine/${name}`);
    },
  );
});
