import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Replay } from '../../control/scheduler/simulation/replay.ts';
import { traceLines } from '../../control/scheduler/trace/trace-file.ts';
import { usageTrace } from '../../control/scheduler/trace/usage-trace.ts';
import { isBuilt, polyrow } from './polyrow-process.ts';

/** A few partitions have most of the load. */
const skewed = ['--skew', '0.9'];
let directory: string;
let file: string;

/** Twenty minutes of two tenants, one of which works in bursts. */
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-simulate-'));
  file = join(directory, 'trace.jsonl');
  const minutes = Array.from({ length: 20 }, (_, minute) => minute);
  const rows = minutes.flatMap((minute) => {
    const at = minute * 60_000;
    const one = { at, plane: 'redis', class: 'write' } as const;
    const bursts = { ...one, tenant: 'bursts', ru: minute % 10 < 3 ? 12_000 : 600 };
    const read = { ...one, class: 'read', tenant: 'steady', ru: 30_000 } as const;
    return [bursts, read, { ...one, tenant: 'steady', ru: 10_000 }];
  });
  writeFileSync(file, [...traceLines(usageTrace(rows, 0, 20 * 60_000))].join(''));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe.skipIf(!isBuilt)('polyrow simulate', () => {
  test('prints what a policy would do with a recording that is tiled to a day', async () => {
    const { code, out, err } = await polyrow([
      'simulate',
      '--trace',
      file,
      '--tile',
      'day',
      ...skewed,
    ]);
    expect(code).toBe(0);
    expect(err).toContain('laid out on nodes that are made up');
    expect(out).toContain('9 nodes, 9 pods');
    expect(out).toContain('1440 points, one every 60 s');
    expect(out).toMatch(
      /^1\. node\d-pod leads (bursts|steady)\/redis\/0\.\d+ in place of node\d-pod$/m,
    );
    expect(out).toContain('Judged on another draw of the load than it was planned on:');
  });

  test('holds all policies side by side, as JSON with the same figures before', async () => {
    const words = ['simulate', '--trace', file, '--compare', '--json', '--tile', 'day', ...skewed];
    const { code, out } = await polyrow(words);
    expect(code).toBe(0);
    const { replays } = JSON.parse(out) as { replays: Replay[] };
    const names = replays.map(({ policy }) => policy);
    expect(names).toEqual(expect.arrayContaining(['nothing', 'random', 'xstor']));
    for (const { before } of replays) expect(before).toEqual(replays[0]!.before);
    const of = (name: string): Replay => replays.find(({ policy }) => policy === name)!;
    expect(of('nothing').after).toEqual(of('nothing').before);
    expect(of('xstor').after.anomalies).toBeLessThan(of('nothing').after.anomalies);
    // The same words draw the same numbers.
    const again = JSON.parse((await polyrow(words)).out) as { replays: Replay[] };
    expect(again.replays.map(({ steps }) => steps)).toEqual(replays.map(({ steps }) => steps));
  });

  test.each([
    [[], 'give one of --trace and --workload'],
    [['--trace', '/there/is/none'], 'ENOENT'],
    [['--workload', 'W-REPL', '--trace', 'x'], 'give one of --trace and --workload'],
    [['--workload', 'W-REPL', '--policy', 'magic'], 'Allowed choices are nothing'],
    [['--workload', 'W-REPL', '--nodes', '2'], 'Three replicas need three nodes'],
  ])('refuses %j', async (words, message) => {
    const { code, out, err } = await polyrow(['simulate', ...words]);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });

  test('says so when every pod is overloaded', async () => {
    const { out } = await polyrow(['simulate', '--trace', file, '--pod-limit', '10']);
    expect(out).toMatch(
      /xstor would do nothing: node\d-pod has \d+ anomalous minutes in the load that is planned on, but none of its \d+ replicas/,
    );
    expect(out).toContain('Pods have 11 replicas here');
    expect(out).toContain('The cluster needs more pods');
  });

  test('says why a policy would do nothing, with the figure that decided', async () => {
    const words = ['simulate', '--trace', file, '--partitions', '9', '--skew', '0'];
    const told = async (policy: string): Promise<string> =>
      (await polyrow([...words, '--policy', policy])).out;
    expect(await told('libra')).toMatch(
      /libra would do nothing: largest over mean load is 1\.0\d\d, that of node\d-pod: not above 1\.05\./,
    );
    expect(await told('abase-quotas')).toContain('a forecast needs 24 hours');
    expect(await told('abase-pools')).toContain('all nodes are in one pool');
    expect(await told('xstor')).toMatch(
      /xstor would do nothing: no pod has (more than \d+|an) anomalous minutes? in the load that is planned on/,
    );
    const { out } = await polyrow([...words, '--compare']);
    expect(out).toMatch(/^On the load that was planned on, before: \d+ above 60 %, \d+ anomalous/m);
    expect(out).toMatch(/^ {2}xstor-models +no node is of the hardware `memory`$/m);
  });

  test('names the line of a file that is wrong', async () => {
    writeFileSync(file, '{"format":"something else"}\n');
    const { code, err } = await polyrow(['simulate', '--trace', file]);
    expect(code).toBe(2);
    expect(err).toContain(`${file}: line 1: this is no trace`);
  });
});
