// A step of `npm run build`: loading hundreds of small modules in each of three threads takes most
// of the time of a start. So the modules of `polyrow` are bundled into few files, dist/bundle/,
// which the entries in dist/ import. Modules that a command imports lazily stay in files of their
// own.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { rolldown } from 'rolldown';

const root = join(import.meta.dirname, '..');
const bundle = join(root, 'dist/bundle');
/** Main modules of processes and threads. */
const entries = [
  'cli/main',
  'cli/demo/load/load-process',
  'server/planes/redis-plane',
  'server/planes/influx-plane',
];
const nameOf = (entry) => entry.slice(entry.lastIndexOf('/') + 1);

/** Files are found beside the module that names them, whichever bundle it is in. */
const places = {
  name: 'places',
  transform(code, id) {
    if (!id.endsWith('.ts')) return null;
    const folder = relative(bundle, join(root, 'dist', relative(root, dirname(id))));
    const placed = code.replaceAll(
      /new URL\('([^']+)', import\.meta\.url|join\(import\.meta\.dirname|import\.meta\.\w+/g,
      (use, path) => {
        if (path !== undefined) return `new URL('${posix.join(folder, path)}', import.meta.url`;
        if (use.startsWith('join')) return `${use}, '${folder}'`;
        throw new Error(
          `${id}: ${use} in another form than those that ${import.meta.filename} knows`,
        );
      },
    );
    // No line has moved.
    return { code: placed, map: null };
  },
};

const modules = await rolldown({
  cwd: root,
  input: Object.fromEntries(entries.map((entry) => [nameOf(entry), `${entry}.ts`])),
  platform: 'node',
  // Packages, and the modules of Node.
  external: /^[^./]/,
  plugins: [places],
  onLog(level, log, report) {
    // Any bundling problem would surface only when the server starts, so warnings are errors.
    if (level === 'warn') throw new Error(log.message);
    report(level, log);
  },
});
const { output } = await modules.write({
  dir: bundle,
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
  sourcemap: true,
  // The documentation names functions, and so do stack traces: two of one name get other names in one file.
  keepNames: true,
});
await modules.close();

// Not before: a server that runs may still need them, if they are the same.
const written = new Set(output.map(({ fileName }) => fileName));
for (const name of readdirSync(bundle)) if (!written.has(name)) rmSync(join(bundle, name));

for (const entry of entries) {
  const file = join(root, 'dist', `${entry}.js`);
  mkdirSync(dirname(file), { recursive: true });
  const path = relative(dirname(file), join(bundle, `${nameOf(entry)}.js`));
  writeFileSync(file, `${entry === 'cli/main' ? '#!/usr/bin/env node\n' : ''}import '${path}';\n`);
}
