import { describe, expect, it } from 'vitest';
import type { StepSource } from '../../contracts/step-watcher.ts';
import { type Interruptions, type LongStep, StepWatch } from './step-watch.ts';

const none: Interruptions = { collectionMs: () => 0, preemptedMs: () => 0 };

function watched(interruptions: Interruptions = none): {
  watch: StepWatch;
  reported: LongStep[];
  judge: () => void;
} {
  const reported: LongStep[] = [];
  const waiting: (() => void)[] = [];
  const watch = new StepWatch({
    report: (step) => reported.push(step),
    interruptions,
    later: (run) => waiting.push(run),
    now: () => 1_700_000_000_000,
  });
  return { watch, reported, judge: () => waiting.splice(0).forEach((run) => run()) };
}

function source(what: string, tenant = 3): StepSource & { asked: number } {
  return {
    asked: 0,
    stepInfo() {
      this.asked++;
      return { what, tenant, bytes: 17 };
    },
  };
}

describe('step watch', () => {
  it('tells of steps over the limit, and asks nothing of others', () => {
    const { watch, reported, judge } = watched();
    const short = source('get');
    watch.ended(0, 24.9, short);
    watch.ended(100, 140, source('keys'));
    judge();
    expect(short.asked).toBe(0);
    expect(reported).toEqual([
      {
        id: 1,
        at: 1_700_000_000_000,
        what: 'keys',
        tenant: 3,
        bytes: 17,
        durationMs: 40,
        collectionMs: 0,
        preemptedMs: 0,
        cause: 'work',
      },
    ]);
    expect(watch.countsOf('work')).toEqual({ count: 1, longestMs: 40 });
    expect(watch.newest(10)).toEqual(reported);
  });

  it.each([
    { collection: 30, preempted: 0, cause: 'collection' },
    { collection: 0, preempted: 20, cause: 'preemption' },
    { collection: 10, preempted: 14, cause: 'preemption' },
    { collection: 5, preempted: 5, cause: 'work' },
  ])(
    'puts a step of 40 ms with $collection ms of collection and $preempted ms without a processor down to $cause',
    ({ collection, preempted, cause }) => {
      const { watch, reported, judge } = watched({
        collectionMs: () => collection,
        preemptedMs: () => preempted,
      });
      watch.ended(0, 40, source('sort'));
      judge();
      expect(reported.map((step) => step.cause)).toEqual([cause]);
      expect(watch.countsOf('work').count).toBe(cause === 'work' ? 1 : 0);
    },
  );

  it('says what a step was as of its end, though its reason is found later', () => {
    const { watch, reported, judge } = watched();
    let what = 'lrange';
    watch.ended(0, 30, { stepInfo: () => ({ what, tenant: 1, bytes: 0 }) });
    what = 'ping';
    judge();
    expect(reported[0]!.what).toBe('lrange');
  });

  it('puts a late heartbeat down to what was touched last, unless a step explains it', () => {
    const { watch, reported, judge } = watched();
    watch.touched(source('write db', 5));
    watch.heartbeat(1000, 1010);
    watch.heartbeat(1010, 1060);
    watch.ended(1060, 1160, source('keys'));
    watch.heartbeat(1070, 1161);
    judge();
    expect(reported.map(({ what, tenant, durationMs }) => [what, tenant, durationMs])).toEqual([
      ['after write db', 5, 50],
      ['keys', 3, 100],
    ]);
  });

  it('keeps a bounded list in which a tenant pushes out its own steps first', () => {
    const { watch, judge } = watched();
    watch.ended(0, 30, source('mine', 1));
    for (let n = 0; n < 1000; n++) {
      watch.ended(0, 30, source('flood', 2));
      if (n % 50 === 0) judge();
    }
    judge();
    expect(watch.newest(2000, 1).map(({ what }) => what)).toEqual(['mine']);
    expect(watch.newest(2000).length).toBeLessThan(100);
    expect(watch.countsOf('work').count).toBe(1001);
    watch.forget(2);
    expect(watch.newest(2000)).toHaveLength(1);
  });
});
