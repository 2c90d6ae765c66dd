// Queues and locks as their libraries make them: BullMQ, redlock, Celery and RQ, each doing real work.
//
// They are not among this package's dependencies. QUEUE_CLIENTS names a directory that has them: `node_modules` with
// bullmq, redlock and ioredis, and `venv` with celery and rq. `.ci/run` makes one.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBuilt } from '../../cli/polyrow-process.ts';
import { Polyrow } from '../../support/polyrow.ts';

const directory = process.env['QUEUE_CLIENTS'] ?? '';
const node = process.execPath;
const python = join(directory, 'venv/bin/python');

const programs = [
  { name: 'BullMQ', needs: 'node_modules/bullmq', command: [node, 'bullmq_work.mjs'] },
  { name: 'redlock', needs: 'node_modules/redlock', command: [node, 'redlock_work.mjs'] },
  { name: 'Celery', needs: 'venv/bin/celery', command: [python, 'celery_work.py'] },
  { name: 'RQ', needs: 'venv/bin/rq', command: [python, 'rq_work.py'] },
];

const isInstalled = (needs: string): boolean =>
  directory !== '' && existsSync(join(directory, needs));
for (const { name, needs } of programs) {
  if (!isInstalled(needs))
    console.warn(`skipped: ${name} (QUEUE_CLIENTS names no directory with ${needs})`);
}

describe.skipIf(!isBuilt).each(['memory', 'kv'])('on %s', (model) => {
  let server: Polyrow;
  beforeAll(async () => {
    server = await Polyrow.start({ flags: ['--redis.default-model', model] });
  });
  afterAll(() => server.remove());

  for (const { name, needs, command } of programs) {
    test.skipIf(!isInstalled(needs))(name, async () => {
      const [program, script] = command as [string, string];
      const words = [join(import.meta.dirname, script), String(server.redisPort), directory];
      const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
      const child = spawn(program, words, { cwd: import.meta.dirname, env });
      let output = '';
      child.stdout.on('data', (chunk) => (output += String(chunk)));
      child.stderr.on('data', (chunk) => (output += String(chunk)));
      const [code] = (await once(child, 'close')) as [number | null];
      expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/passed\n$/) });
    });
  }
});
