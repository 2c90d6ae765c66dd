import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ChargeClass, Meter } from '../../request-units/meter.ts';
import { MeasuredCapacity } from './measured-capacity.ts';

let directory: string;
let measured: MeasuredCapacity | undefined;
let warnings: string[];
let changes: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-capacity-'));
  warnings = [];
  changes = 0;
});
afterEach(() => {
  measured?.close();
  vi.restoreAllMocks();
  vi.useRealTimers();
  rmSync(directory, { recursive: true, force: true });
});

function open(meter: Meter, into = directory): MeasuredCapacity {
  measured = new MeasuredCapacity({
    directory: into,
    accounts: () => meter.all(),
    isLimiting: () => false,
    changed: () => changes++,
    warn: (message) => warnings.push(message),
  });
  return measured;
}

/** Seconds in which so many units are charged to a thread that is always busy. */
function busySeconds(meter: Meter, units: number, seconds: number): void {
  const utilization = { idle: 0, active: 1000, utilization: 1 };
  vi.spyOn(performance, 'eventLoopUtilization').mockReturnValue(utilization);
  for (let i = 0; i < 2 * seconds; i++) {
    meter.account(1).charge(ChargeClass.write, 0, false, units / 2, 1, 1, 1, 1);
    vi.advanceTimersByTime(500);
  }
}

test('what load has confirmed is told, kept, and known after a restart', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const meter = new Meter({ plane: 'redis', run: 'test' });
  const first = open(meter);
  expect(first.perSecond).toBe(0);
  busySeconds(meter, 5000, 1);
  expect([first.perSecond, changes]).toEqual([0, 0]);
  busySeconds(meter, 5000, 0.5);
  expect([first.perSecond, changes]).toEqual([5000, 1]);
  // Less than a twentieth is not told.
  busySeconds(meter, 5100, 2);
  expect([first.perSecond, changes]).toEqual([5000, 1]);
  first.close();
  vi.useRealTimers();
  const file = join(directory, 'capacity.json');
  await expect.poll(() => readFileSync(file, 'utf8')).toBe('{"ruPerSecond":5000}\n');
  expect(open(meter).perSecond).toBe(5000);
  expect(warnings).toEqual([]);
});

test.each(['', '{', 'null', '{"ruPerSecond":-1}', '{"ruPerSecond":"5"}', '{}'])(
  'a file with %j counts as none',
  (text) => {
    writeFileSync(join(directory, 'capacity.json'), text);
    expect(open(new Meter({ plane: 'redis', run: 'test' })).perSecond).toBe(0);
  },
);

test('a directory that cannot be written to is reported', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const file = join(directory, 'file');
  writeFileSync(file, '');
  const meter = new Meter({ plane: 'redis', run: 'test' });
  open(meter, join(file, 'below'));
  busySeconds(meter, 5000, 3);
  await expect.poll(() => warnings).toEqual(['the measured capacity could not be kept']);
});
