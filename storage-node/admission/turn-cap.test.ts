import { expect, test } from 'vitest';
import { TurnCap, turnCapDefaults } from './turn-cap.ts';

const { windowMs } = turnCapDefaults;

interface Flood {
  /** Time that the tenant had the thread, and when. */
  stretches: [from: number, to: number][];
  ms: number;
}

/** Tenant 1 wants the thread for turns of `turnMs` for ever; another is seen every so often. */
function flood({ turnMs = 0.1, otherEveryMs = 50, ms = 1500, cap = new TurnCap() } = {}): Flood {
  const stretches: Flood['stretches'] = [];
  let seenAt = -Infinity;
  let now = 0;
  while (now < ms) {
    if (now - seenAt >= otherEveryMs) {
      seenAt = now;
      cap.asked(2, now);
    }
    cap.asked(1, now);
    if (cap.mayBegin(1, now)) {
      cap.began(1, now);
      stretches.push([now, now + turnMs]);
      now += turnMs;
      cap.rests(now);
    } else now += 1;
  }
  return { stretches, ms: now };
}

function heldIn({ stretches }: Flood, from: number, to: number): number {
  return stretches.reduce(
    (sum, [begin, end]) => sum + Math.max(0, Math.min(end, to) - Math.max(begin, from)),
    0,
  );
}

test('a flood has nine tenths of any window, and not much less', () => {
  const run = flood();
  for (let from = 0; from + windowMs <= run.ms; from += 7) {
    expect(heldIn(run, from, from + windowMs)).toBeLessThanOrEqual(0.9 * windowMs + 0.1);
  }
  expect(heldIn(run, 0, run.ms) / run.ms).toBeGreaterThan(0.85);
});

test('long turns are made up for', () => {
  const run = flood({ turnMs: 40 });
  expect(heldIn(run, 0, run.ms) / run.ms).toBeLessThan(0.91);
  expect(heldIn(run, 0, run.ms) / run.ms).toBeGreaterThan(0.8);
});

test('who is alone has all, and begins with nothing against it', () => {
  const cap = new TurnCap();
  const alone = flood({ otherEveryMs: Infinity, ms: 3000, cap });
  // The other one was there at the beginning.
  expect(heldIn(alone, 1001, 3000)).toBeGreaterThan(1990);
  cap.asked(2, 3001);
  expect(cap.mayBegin(1, 3001)).toBe(true);
});

test('no turn is held against its tenant for longer than a window', () => {
  const cap = new TurnCap();
  cap.asked(2, 0);
  cap.asked(1, 0);
  cap.began(1, 0);
  cap.rests(30_000);
  cap.asked(2, 30_000);
  expect(cap.mayBegin(1, 30_000 + windowMs - 1)).toBe(false);
  expect(cap.mayBegin(1, 30_000 + windowMs + 1)).toBe(true);
  expect(cap.mayBegin(2, 30_000)).toBe(true);
});

test('what is told afterwards counts as what was seen, and once', () => {
  const allowedAt = (use: (cap: TurnCap) => void): number => {
    const cap = new TurnCap();
    cap.asked(2, 0);
    cap.asked(1, 0);
    use(cap);
    let now = 50;
    while (!cap.mayBegin(1, now)) now += 0.25;
    return now;
  };
  const seen = allowedAt((cap) => {
    cap.began(1, 0);
    cap.rests(50);
  });
  expect(seen).toBeGreaterThan(54);
  expect(allowedAt((cap) => cap.spent(1, 50, 50))).toBe(seen);
  const both = allowedAt((cap) => {
    cap.began(1, 0);
    cap.spent(1, 50, 50);
  });
  expect(both).toBe(seen);
});

test('the thread is one tenant’s until the next begins', () => {
  const cap = new TurnCap();
  cap.asked(2, 0);
  cap.asked(1, 0);
  cap.began(1, 0);
  expect(cap.isRunning).toBe(true);
  cap.began(2, 20);
  cap.rests(40);
  expect(cap.isRunning).toBe(false);
  expect(cap.mayBegin(2, 40)).toBe(false);
  expect(cap.mayBegin(1, 40)).toBe(true);
  cap.forget(2);
  expect(cap.mayBegin(2, 40)).toBe(true);
});
