// redis-py, as installed: REDIS_PY names an interpreter that has another version of it.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';

const interpreters = [process.env['REDIS_PY'] ?? [], 'python3', '/usr/bin/python3'].flat();
const python = interpreters.find((name) => spawnSync(name, ['-c', 'import redis']).status === 0);
if (python === undefined) console.warn('skipped: no python3 with redis-py (python3-redis)');

describe.skipIf(python === undefined)('redis-py', () => {
  let server: Polyrow;
  beforeAll(async () => {
    server = await Polyrow.start();
  });
  afterAll(async () => {
    await server.stop();
    await server.remove();
  });

  test.each([2, 3])('with RESP%i', async (protocol) => {
    const script = `${import.meta.dirname}/redis_py.py`;
    const child = spawn(python!, [script, String(server.redisPort), String(protocol)]);
    let output = '';
    child.stdout.on('data', (chunk) => (output += String(chunk)));
    child.stderr.on('data', (chunk) => (output += String(chunk)));
    const [code] = (await once(child, 'close')) as [number | null];
    expect(output).toMatch(/^(passed|skipped)/);
    expect(code).toBe(0);
  });
});
