// Cost of a setting that can be switched while a server runs: windows with and without it alternate
// under a continuous load. So both see the same process in the same state, and the same other load
// on the machine.

import { setTimeout as sleep } from 'node:timers/promises';
import { adminOf } from './admin.ts';
import { cpuNanoseconds } from './process-usage.ts';
import type { Running } from './processes.ts';
import type { Row } from './report.ts';
import { median, medianWithin, pairsToJudge } from './statistics.ts';

/** A load that keeps the server busy until it is ended. */
export interface SteadyLoad {
  /** Requests, or points, that were answered up to now. */
  answered(): Promise<number>;
  end(): Promise<void>;
}

interface Switched {
  /** Name of the measurement, for example `SET P=16`, and its unit, counted per second. */
  name: string;
  unit: string;
  server: Running;
  load: SteadyLoad;
  /** Options set to `on` or `off`. */
  settings: readonly string[];
  /** Pairs of windows. */
  rounds: number;
  /**
   * Length of each window. A machine's speed changes by a tenth within half a second, so windows
   * much shorter than that differ only by the setting.
   */
  seconds: number;
  /** The part of its throughput that the server is to keep. */
  target: number;
}

interface Speed {
  perSecond: number;
  /** Processor time of all threads, per request. */
  cpuMicros: number;
}

/** Time until the load is steady, and earlier decisions have taken effect. */
const warmUpMs = 2000;
const settleMs = 20;

/** Ratios of on to off: medians over all pairs, with their 95 % interval. */
export async function compareSwitched(switched: Switched): Promise<Row[]> {
  const { name, unit, server, load, settings, rounds, target } = switched;
  const on: Speed[] = [];
  const off: Speed[] = [];
  try {
    const admin = await adminOf(server);
    await sleep(warmUpMs);
    for (let round = 0; round < rounds; round++) {
      // The order alternates, so that drift affects both.
      for (const isOn of round % 2 === 0 ? [true, false] : [false, true]) {
        const value = isOn ? 'on' : 'off';
        const values = Object.fromEntries(settings.map((key) => [key, value]));
        await admin.request('PATCH', '/v1/config', values);
        await sleep(settleMs);
        (isOn ? on : off).push(await speedOf(switched));
      }
      if (round % 10 === 0) process.stderr.write(`\r${name}: round ${round} of ${rounds}   `);
    }
  } finally {
    await load.end();
  }
  const row = (of: keyof Speed): Pick<Row, 'ours' | 'peer' | 'ratio' | 'interval'> => {
    const { middle, low, high } = medianWithin(on.map((speed, i) => speed[of] / off[i]![of]));
    return {
      ours: median(on.map((speed) => speed[of])),
      peer: median(off.map((speed) => speed[of])),
      ratio: middle,
      ...(rounds < pairsToJudge ? {} : { interval: { low, high } }),
    };
  };
  const rows: Row[] = [
    { name, unit, better: 'higher', target, ...row('perSecond') },
    { name: `${name} CPU`, unit: 'us', better: 'lower', target: 1 / target, ...row('cpuMicros') },
  ];
  const words = rows.map(({ ratio, interval }) =>
    interval === undefined
      ? ratio.toFixed(3)
      : `${ratio.toFixed(3)} (${interval.low.toFixed(3)} to ${interval.high.toFixed(3)})`,
  );
  process.stderr.write(`\r${name}: ${words[0]}, CPU ${words[1]}\n`);
  return rows;
}

async function speedOf({ server: { pid }, load, seconds }: Switched): Promise<Speed> {
  const look = async (): Promise<{ done: number; at: number; cpu: number }> => {
    const done = await load.answered();
    return { done, at: performance.now(), cpu: cpuNanoseconds(pid) };
  };
  const before = await look();
  await sleep(seconds * 1000);
  const after = await look();
  const done = after.done - before.done;
  if (done === 0) throw new Error('nothing was answered');
  return {
    perSecond: (done / (after.at - before.at)) * 1000,
    cpuMicros: (after.cpu - before.cpu) / 1000 / done,
  };
}
