import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { realDisk } from '../storage-node/disk/real-disk.ts';
import { Trial } from './conformance/trial.ts';
import { createEngine } from './create-engine.ts';

const mebibyte = 1024 * 1024;
const root = mkdtempSync(join(tmpdir(), 'polyrow-engines-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test.each(['memory', 'kv'] as const)('creates the engine of model %s', async (model) => {
  const engine = await createEngine(model, { directory: join(root, model), disk: realDisk });
  expect(engine.model).toBe(model);
});

test('the write buffer of model kv is as large as was asked for', async () => {
  const flushed = async (writeBufferBytes: number): Promise<number> => {
    const directory = join(root, `kv-${writeBufferBytes}`);
    const engine = await createEngine('kv', { directory, disk: realDisk, writeBufferBytes });
    const trial = await Trial.open({
      model: 'kv',
      supports: { rollback: true, reopen: true },
      create: () => engine,
      newDirectory: () => directory,
    });
    for (let i = 0; i < 8; i++) {
      await trial.run((verbs) => {
        verbs.put(`key ${i}`, randomBytes(mebibyte / 2).toString('base64'));
      });
      trial.engine.endTick();
      while (trial.engine.stats().extra['kv_waiting_bytes']! > 0) await sleep(1);
    }
    await trial.close();
    // LevelDB makes a file of each full buffer, and of none when it closes.
    return readdirSync(directory).filter((name) => name.endsWith('.ldb')).length;
  };
  expect(await flushed(64 * mebibyte)).toBe(0);
  expect(await flushed(mebibyte)).toBeGreaterThan(2);
});
