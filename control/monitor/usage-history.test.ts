import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { ChargeClass, Meter } from '../../request-units/meter.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { LineLog } from '../line-log/line-log.ts';
import { UsageHistory, type UsageRecord } from './usage-history.ts';

const minute = 60_000;
const hour = 60 * minute;

let now: number;
let meter: Meter;
let history: UsageHistory;

beforeEach(() => {
  now = 1000 * hour;
  meter = new Meter({ plane: 'redis', run: 'a' });
  history = new UsageHistory(undefined, () => now);
});

function spend(
  tenant: number,
  ru: number,
  failed = false,
  kind: ChargeClass = ChargeClass.read,
): void {
  meter.account(tenant).charge(kind, 0, failed, ru, ru, 0, 0, 0);
}

/** The periodic work of a collector. */
function collect(): void {
  meter.tick();
  history.add(meter.snapshot(now, history.sequenceOf('redis')));
}

test('what was spent is told by slot, tenant, plane and class', () => {
  spend(1, 5);
  spend(1, 2, true, ChargeClass.write);
  spend(2, 1);
  collect();
  now += minute;
  spend(1, 10);
  collect();
  const rows = (
    by: Parameters<UsageHistory['rows']>[0]['by'],
    slot: 'minute' | 'hour' = 'minute',
  ) => history.rows({ slot, by });
  expect(rows([])).toEqual([{ requests: 4, errors: 1, ru: 18 }]);
  expect(rows(['tenant'])).toEqual([
    { tenant: 1, requests: 3, errors: 1, ru: 17 },
    { tenant: 2, requests: 1, errors: 0, ru: 1 },
  ]);
  expect(rows(['class', 'plane']).map(({ class: kind, ru }) => [kind, ru])).toEqual([
    ['read', 16],
    ['write', 2],
  ]);
  expect(rows(['time']).map(({ at, ru }) => [at! - 1000 * hour, ru])).toEqual([
    [0, 8],
    [minute, 10],
  ]);
  expect(rows(['time'], 'hour')).toEqual([{ at: 1000 * hour, requests: 4, errors: 1, ru: 18 }]);
  const wish = { slot: 'minute', by: [], tenant: 1, class: 'read' } as const;
  expect(history.rows({ ...wish, from: now })).toEqual([{ requests: 1, errors: 0, ru: 10 }]);
  expect(history.rows({ ...wish, to: now })).toEqual([{ requests: 1, errors: 0, ru: 5 }]);
  expect(history.rows({ ...wish, plane: 'influx' })).toEqual([]);
});

test('a report that is lost, late or comes twice changes nothing', () => {
  spend(1, 5);
  const first = meter.snapshot(now);
  spend(1, 5);
  const lost = meter.snapshot(now, first.sequence);
  spend(1, 5);
  const third = meter.snapshot(now, first.sequence);
  for (const report of [first, first, third, third, first, lost]) history.add(report);
  expect(history.rows({ slot: 'hour', by: [] })).toEqual([{ requests: 3, errors: 0, ru: 15 }]);
});

test('a plane that begins anew begins at 0', () => {
  spend(1, 5);
  collect();
  meter = new Meter({ plane: 'redis', run: 'b' });
  spend(1, 3);
  history.add(meter.snapshot(now));
  expect(history.rows({ slot: 'hour', by: [] })[0]?.ru).toBe(8);
});

test('a restart knows what was written down', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-usage-'));
  const files = { disk: realDisk, directory, name: 'spent', fileBytes: 10_000, files: 3 } as const;
  const open = () =>
    (history = new UsageHistory(LineLog.open<UsageRecord>({ ...files, sync: true }), () => now));
  open();
  spend(1, 5);
  collect();
  await history.write();
  await history.write();
  spend(1, 2);
  collect();
  now += hour;
  spend(2, 1);
  collect();
  const before = history.rows({ slot: 'hour', by: ['time', 'tenant', 'plane', 'class'] });
  expect(before.map(({ ru }) => ru)).toEqual([7, 1]);
  await history.close();
  open();
  expect(history.rows({ slot: 'hour', by: ['time', 'tenant', 'plane', 'class'] })).toEqual(before);
  await history.close();
  rmSync(directory, { recursive: true });
});

test('what it keeps is bounded, and the hours outlast the minutes', () => {
  for (let n = 0; n < 3 * 24 * 60; n++) {
    spend(1, 1);
    collect();
    now += minute;
  }
  expect(history.rows({ slot: 'minute', by: ['time'] })).toHaveLength(24 * 60);
  expect(history.rows({ slot: 'hour', by: ['time'] })).toHaveLength(72);
  expect(history.rows({ slot: 'hour', by: [] })[0]?.ru).toBe(3 * 24 * 60);
});

test('many tenants leave room for each other', () => {
  for (let n = 0; n < 25; n++) {
    for (let tenant = 0; tenant < 10_000; tenant++) spend(tenant, 1);
    collect();
    now += minute;
  }
  expect(history.rows({ slot: 'minute', by: ['time'] }).length).toBeLessThan(22);
  expect(history.rows({ slot: 'hour', by: [] })[0]?.ru).toBe(250_000);
});
