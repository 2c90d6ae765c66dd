import { OperationQuotas } from '../gateway-pools/operation-quotas.ts';
import { ReplyPage } from '../gateway-pools/reply-page.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';

const scans = 1000;
const megabyte = 1_000_000;
const scansPerSecond = 200;

interface Scan {
  /** Size of all its replies. */
  bytes: number;
  units: number;
  largest: number;
  /** Rows that came not once, or not in their order. */
  wrong: number;
}

/** Rows of a scan between a kilobyte and some tens of megabytes; the largest are 400 kB. */
function rowsOf(chance: Chance): number[] {
  const bytes = Math.min(50e6, Math.max(1200, chance.lognormal(Math.log(200_000), 2)));
  const typical = Math.max(300, Math.min(20_000, chance.lognormal(Math.log(1000), 1.5)));
  const rows: number[] = [];
  for (let left = bytes; left > 0; left -= rows.at(-1)!) {
    const size = Math.min(400_000, typical * chance.lognormal(0, 1));
    rows.push(Math.max(20, Math.round(Math.min(size, left))));
  }
  return rows;
}

/** Asks for page after page, each as soon as the quota lets it in. */
function scan(
  rows: readonly number[],
  quotas: OperationQuotas,
  page: ReplyPage,
  clock: Time,
): Scan {
  const done: Scan = { bytes: 0, units: 0, largest: 0, wrong: 0 };
  let expected = 0;
  // The continuation: with which row to go on.
  for (let cursor = 0; cursor < rows.length; ) {
    while (!quotas.admit('scan', clock.now)) {
      clock.now += Math.max(0.001, quotas.wait('scan', clock.now));
    }
    page.begin();
    while (cursor < rows.length && page.add(rows[cursor]!)) {
      if (cursor !== expected) done.wrong++;
      cursor++;
      expected++;
    }
    done.units += quotas.settle('scan', page.bytes, clock.now);
    done.bytes += page.bytes;
    done.largest = Math.max(done.largest, page.bytes);
  }
  done.wrong += rows.length - expected;
  return done;
}

interface Time {
  now: number;
}

interface Run {
  scans: Scan[];
  /** Units counted a second, of the class's quota. */
  ofQuota: number;
}

function run(isOn: boolean, seed: number): Run {
  const chance = new Chance(seed);
  const clock = { now: 0 };
  // Left out, a scan is one request and one reply, however large.
  const quotas = new OperationQuotas(
    { perSecond: { scan: scansPerSecond }, ...(!isOn && { replyUnitBytes: Infinity }) },
    0,
  );
  const page = new ReplyPage(isOn ? {} : { limitBytes: Infinity });
  const all = Array.from({ length: scans }, () => scan(rowsOf(chance), quotas, page, clock));
  const bytes = all.reduce((sum, one) => sum + one.bytes, 0);
  return { scans: all, ofQuota: bytes / 1024 / (clock.now / 1000) / scansPerSecond };
}

/** The scan whose units a byte are furthest from those of all together, %. */
function furthestOff({ scans: all }: Run): number {
  const sum = (of: 'units' | 'bytes'): number => all.reduce((total, one) => total + one[of], 0);
  const perByte = sum('units') / sum('bytes');
  return 100 * Math.max(...all.map(({ units, bytes }) => Math.abs(units / bytes / perByte - 1)));
}

function lineOf({ scans: all }: Run): Line[] {
  const sorted = all.toSorted((a, b) => a.bytes - b.bytes);
  return [
    {
      label: 'units counted',
      points: sorted.map(({ bytes, units }): [number, number] => [bytes / megabyte, units]),
    },
  ];
}

export const operationQuotas: Experiment = {
  id: 'AWS-cost-quotas',
  title: 'Quotas for expensive operations, pages and large replies',
  kind: 'SIM',
  source: 'Amazon, Fairness in multi-tenant systems, "Quota visibility and flexibility"',
  setup:
    'Withdrawn as a claim about the server, whose limits on scans are in request units; this policy is in bench/gateway-pools. ' +
    '1,000 scans of 1 kB to 50 MB (lognormal around 200 kB) over rows of up to 400 kB, by a client that asks for page after ' +
    'page as fast as its quota of 200 requests a second allows. Left out, a scan is one request and one reply.',
  run({ seeds, progress }) {
    const runs = (isOn: boolean): Run[] =>
      seeds.map((seed) => {
        progress(`seed ${seed}`);
        return run(isOn, seed);
      });
    const before = runs(false);
    const after = runs(true);
    const most = (all: readonly Run[], of: (one: Run) => number): number =>
      Math.max(...all.map(of));
    const largest = (one: Run): number =>
      Math.max(...one.scans.map((each) => each.largest)) / megabyte;
    const wrong = (one: Run): number => one.scans.reduce((sum, each) => sum + each.wrong, 0);
    return {
      measures: [
        {
          metric: 'largest reply, MB',
          value: most(after, largest),
          threshold: 1,
          better: 'lower',
          without: most(before, largest),
        },
        {
          metric: 'units a byte of the scan that is furthest off that of all, %',
          value: most(after, furthestOff),
          threshold: 10,
          better: 'lower',
          without: most(before, furthestOff),
        },
        {
          metric: 'rows missing, twice or out of order',
          value: most(after, wrong),
          threshold: 0,
          better: 'lower',
        },
        {
          metric: 'kB read a second, of the quota of the class',
          value: most(after, (one) => one.ofQuota),
          threshold: 1.01,
          better: 'lower',
          without: most(before, (one) => one.ofQuota),
        },
      ],
      xLabel: 'MB of the scan',
      yLabel: 'units',
      before: { title: 'a scan is a request', lines: lineOf(before[0]!) },
      after: { title: 'by pages and their bytes', lines: lineOf(after[0]!) },
    };
  },
};
