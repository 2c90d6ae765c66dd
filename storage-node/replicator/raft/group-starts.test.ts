import { expect, test } from 'vitest';
import { GroupStarts } from './group-starts.ts';

class TestGroup {
  isLed = false;
  isAwake = true;
  campaigns = 0;
  readonly #woken: (group: TestGroup) => void;

  constructor(woken: (group: TestGroup) => void) {
    this.#woken = woken;
  }

  wake(): void {
    if (this.isAwake) return;
    this.isAwake = true;
    this.#woken(this);
  }

  rest(): void {
    this.isAwake = false;
  }
}

function begin(count: number) {
  let tick = 0;
  const starts = new GroupStarts<TestGroup>({
    ...{ atOnce: 4, patienceTicks: 10 },
    campaign: (group) => void group.campaigns++,
  });
  const groups = Array.from({ length: count }, () => {
    const group = new TestGroup((woken) => starts.woken(woken, tick));
    starts.opened(group, tick);
    return group;
  });
  const awake = (): number => groups.filter(({ isAwake }) => isAwake).length;
  const led = (group: TestGroup): void => {
    group.isLed = true;
    starts.ended(group);
  };
  return { starts, groups, awake, led, pass: () => starts.tick(++tick, 2) };
}

test('some groups look for a leader when they are opened, the others a few with each tick as there is room', () => {
  const { starts, groups, awake, led, pass } = begin(9);
  expect([awake(), starts.begun, starts.waiting]).toEqual([4, 4, 5]);
  pass();
  expect(awake()).toBe(4);
  for (const group of groups.slice(0, 4)) led(group);
  expect(starts.begun).toBe(0);
  pass();
  expect([starts.begun, starts.waiting]).toEqual([2, 3]);
  pass();
  expect([starts.begun, starts.waiting]).toEqual([4, 1]);
  // No group waits for a time-out.
  expect(groups.map(({ campaigns }) => campaigns)).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 0]);
});

test('groups that find no leader make room for others, and come again', () => {
  const { starts, groups, awake, pass } = begin(9);
  for (let ticks = 0; ticks < 200; ticks++) {
    pass();
    expect(awake()).toBeLessThanOrEqual(4);
    expect(starts.begun + starts.waiting).toBe(9);
  }
  for (const { campaigns } of groups) expect(campaigns).toBeGreaterThan(5);
});

test('a group that loses its leader waits for its turn like one that is new', () => {
  const { starts, groups, led, pass } = begin(6);
  for (const group of groups) led(group);
  for (const group of groups) {
    group.isLed = false;
    starts.leaderless(group, 0);
    starts.leaderless(group, 0);
  }
  expect(groups.map(({ isAwake }) => isAwake)).toEqual([true, true, true, true, false, false]);
  led(groups[0]!);
  pass();
  expect([groups[4]!.isAwake, groups[5]!.isAwake, starts.waiting]).toEqual([true, false, 1]);
});

test('while none waits, groups without a leader go on looking', () => {
  const { starts, awake, pass } = begin(3);
  for (let ticks = 0; ticks < 50; ticks++) pass();
  expect([awake(), starts.begun]).toEqual([3, 3]);
});

test('a group that is woken by others need not wait, and rests again when that came to nothing', () => {
  const { starts, groups, pass } = begin(6);
  groups[5]!.wake();
  expect([groups[5]!.campaigns, starts.begun, starts.waiting]).toEqual([1, 5, 1]);
  for (let ticks = 0; ticks < 12; ticks++) pass();
  expect(starts.begun).toBeLessThanOrEqual(4);
  expect(starts.begun + starts.waiting).toBe(6);
});
