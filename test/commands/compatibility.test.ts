// docs/redis-compatibility.md says what both servers answer. UPDATE_COMPATIBILITY=1 writes it anew.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import { compatibilityPage } from './compatibility-page.ts';
import { redisInstalled } from './redis-server.ts';

const file = `${import.meta.dirname}/../../docs/redis-compatibility.md`;

test.skipIf(!redisInstalled)('docs/redis-compatibility.md is what the servers say', async () => {
  const redis = await RedisProcess.start();
  const polyrow = await Polyrow.start();
  try {
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const page = await compatibilityPage(await redis.client(), await polyrow.client(), before);
    if (process.env['UPDATE_COMPATIBILITY'] === '1') writeFileSync(file, page);
    else expect(before).toBe(page);
  } finally {
    await redis.remove();
    await polyrow.stop();
    await polyrow.remove();
  }
});
