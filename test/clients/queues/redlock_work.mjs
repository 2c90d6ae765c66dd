// Locks of redlock. Words: port, the directory with node_modules. Prints `passed` at the end.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [, , port, directory] = process.argv;
const require = createRequire(`${directory}/x.js`);
const { default: Redlock } = require('redlock');
const { default: Redis } = require('ioredis');
const client = new Redis(Number(port), '127.0.0.1');
const locks = new Redlock([client], { retryCount: 0 });
const patient = new Redlock([client], { retryCount: 200, retryDelay: 10, retryJitter: 5 });

const first = await locks.acquire(['r', 'q'], 2000);
await assert.rejects(locks.acquire(['r'], 2000));
const longer = await first.extend(5000);
assert.ok((await client.pttl('r')) > 2500);
await longer.release();
const second = await locks.acquire(['r'], 50);
const third = await patient.acquire(['r'], 2000);
await assert.rejects(second.release());
await third.release();

// Never two at a time.
let inside = 0;
await Promise.all(
  Array.from({ length: 20 }, () =>
    patient.using(['shared'], 2000, async () => {
      assert.equal(++inside, 1);
      await new Promise((resolve) => setTimeout(resolve, 5));
      inside--;
    }),
  ),
);
await client.quit();
console.log('passed');
