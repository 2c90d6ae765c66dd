// `polyrow calibrate`, ended in the middle: nothing of the server that it measures is left.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { isBuilt, PolyrowProcess } from './polyrow-process.ts';

const scratch = mkdtempSync(join(tmpdir(), 'polyrow-signals-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe.skipIf(!isBuilt)('calibrate', () => {
  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ended by %s leaves no directory', async (signal, code) => {
    const environment = { TMPDIR: scratch };
    const calibrating = new PolyrowProcess(
      ['calibrate', '--out', join(scratch, 'table.json')],
      environment,
    );
    const made = () => readdirSync(scratch).filter((name) => name.startsWith('polyrow-calibrate-'));
    const serves = () =>
      made().some((name) => readdirSync(join(scratch, name)).includes('admin-endpoint'));
    await expect.poll(serves).toBe(true);
    calibrating.kill(signal);
    expect((await calibrating.finish()).code).toBe(code);
    expect(made()).toEqual([]);
    // The stopped run writes no more.
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(made()).toEqual([]);
  });
});
