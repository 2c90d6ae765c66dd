// That a body whose pieces are all at hand, so that nothing it waits for lets others run, stops for them all the same.

import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../../universal-row/environment.ts';
import { crowdedSliceMs, type Turns } from '../../../contracts/turns.ts';
import { GroupCommit } from './group-commit.ts';
import { InfluxCounters } from './influx-metrics.ts';
import { PointWriter } from './point-writer.ts';
import { MemorySeriesStore } from './testing/memory-series-store.ts';

const piecesAtHand = 200;

/** Others are always about: a piece of work is over after a tenth of a millisecond. */
class CrowdedTurns implements Turns {
  waited = 0;
  begin(): void {}
  mayRun(): boolean {
    return true;
  }
  isCrowded(): boolean {
    return true;
  }
  isOver(): boolean {
    return true;
  }
  wait(_tenant: number, run: () => void): void {
    this.waited++;
    setImmediate(run);
  }
  spent(): void {}
}

afterEach(() => {
  vi.restoreAllMocks();
});

test.each([
  ['bad lines', 'm v=x\n'],
  ['one line without an end', 'mmmmmm'],
])('%s in pieces that are at hand', async (_, text) => {
  // Each look at the clock is a fiftieth of a slice.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += crowdedSliceMs / 50));
  const store = new MemorySeriesStore('d');
  const turns = new CrowdedTurns();
  const writer = new PointWriter({
    commit: new GroupCommit(store),
    counters: new InfluxCounters(),
    clock: systemClock,
    turns,
    timeoutMs: 0,
  });
  async function* body(): AsyncGenerator<Buffer> {
    for (let n = 0; n < piecesAtHand; n++) yield Buffer.from(text);
  }
  const target = { tenant: 0, store, database: 'd', retentionPolicy: '', precision: '' };
  const report = await writer.write(target, body(), false);
  expect(report.hasGoodLines).toBe(false);
  expect(turns.waited).toBeGreaterThan(2);
  expect(turns.waited).toBeLessThan(piecesAtHand / 2);
});
