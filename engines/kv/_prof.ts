import { casesFor, runCase } from '../conformance.ts';
import { KvEngine } from './kv-engine.ts';
import { mkdtempSync } from 'node:fs';
let n = 0;
const root = mkdtempSync('/tmp/kvp-');
const cacheBytes = Number(process.argv[3] ?? 256 << 20);
const ordered = process.argv[4] === 'ordered';
const subject = {
  model: 'kv',
  supports: { rollback: true, reopen: true },
  create: (directory: string) => new KvEngine({ directory, cacheBytes, isOrdered: () => ordered }),
  newDirectory: () => root + '/' + n++,
};
const t0 = performance.now();
let fails = 0;
for (const one of casesFor(subject))
  if (one.name.startsWith(process.argv[2]!)) {
    const t = performance.now();
    try {
      await Promise.race([
        runCase(one, subject),
        new Promise((_, no) => setTimeout(() => no(new Error('slow')), 30000).unref()),
      ]);
    } catch (e) {
      fails++;
      console.log('FAIL', one.name, String((e as Error).stack).slice(0, 600));
    }
    const d = performance.now() - t;
    if (d > 700) console.log(one.name, d | 0);
  }
console.log('all', (performance.now() - t0) | 0, 'fails', fails);
process.exit();
