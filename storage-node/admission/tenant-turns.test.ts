import { expect, test } from 'vitest';
import { type TenantTurns, tenantTurns, type TurnRule } from './tenant-turns.ts';

const rules: readonly TurnRule[] = [
  'virtual-finish-time',
  'least-granted',
  'most-requested',
  'arrival',
];

function turnsOf(rule: TurnRule): TenantTurns<string> {
  const turns = tenantTurns<string>(rule);
  for (const tenant of [1, 2, 3]) turns.setWeight(tenant, 1);
  return turns;
}

function popAll(turns: TenantTurns<string>, now = 0): string {
  const names: string[] = [];
  for (let name = turns.pop(now); name !== undefined; name = turns.pop(now)) names.push(name);
  return names.join(' ');
}

/** Four turns of tenant 1, then two of tenant 2 and one of tenant 3, of a millisecond each. */
function floodAndOthers(turns: TenantTurns<string>): void {
  for (let i = 0; i < 4; i++) turns.push(1, 1, `a${i}`, 0);
  for (let i = 0; i < 2; i++) turns.push(2, 1, `b${i}`, 0);
  turns.push(3, 1, 'c0', 0);
}

test('each rule has an order of its own', () => {
  const check = (rule: TurnRule, order: string): void => {
    const turns = turnsOf(rule);
    floodAndOthers(turns);
    expect(turns.length).toBe(7);
    expect(turns.next).toBe('a0');
    expect(popAll(turns), rule).toBe(order);
    expect(turns.length).toBe(0);
    expect(turns.next).toBeUndefined();
  };
  check('virtual-finish-time', 'a0 b0 c0 a1 b1 a2 a3');
  check('least-granted', 'a0 b0 c0 a1 b1 a2 a3');
  check('most-requested', 'a0 a1 b0 a2 c0 b1 a3');
  check('arrival', 'a0 a1 a2 a3 b0 b1 c0');
});

test('what a turn has cost counts for the next where it should', () => {
  const check = (rule: TurnRule, first: string): void => {
    const turns = turnsOf(rule);
    turns.push(1, 1, 'a0', 0);
    turns.pop(0);
    turns.settle(1, 50, 0);
    turns.settle(99, 50, 0);
    turns.push(1, 1, 'a1', 0);
    turns.push(2, 1, 'b0', 0);
    turns.push(2, 1, 'b1', 0);
    expect(turns.pop(0), rule).toBe(first);
  };
  check('virtual-finish-time', 'b0');
  check('least-granted', 'b0');
  check('most-requested', 'b0');
  check('arrival', 'a1');
});

test('what was given fades by the second', () => {
  const turns = turnsOf('least-granted');
  turns.settle(1, 100, 0);
  turns.settle(2, 30, 3000);
  turns.push(1, 1, 'a', 3000);
  turns.push(2, 1, 'b', 3000);
  expect(turns.pop(3000)).toBe('a');
});

test('beside a flood that asks again at once everyone has a turn, whatever the rule', () => {
  for (const rule of rules) {
    const turns = turnsOf(rule);
    for (let i = 0; i < 100; i++) turns.push(1, 1, 'flood', 0);
    turns.push(2, 1, 'light', 0);
    let ms = 0;
    while (turns.pop(ms) !== 'light') turns.push(1, 1, 'flood', ++ms);
    // As long as if it had waited for all that was before it.
    expect(ms, rule).toBeLessThanOrEqual(100);
  }
});

test('a tenant is forgotten when nothing of it waits', () => {
  for (const rule of rules) {
    const turns = turnsOf(rule);
    turns.push(1, 1, 'a', 0);
    turns.forget(1);
    expect(turns.queuedOf(1), rule).toBe(1);
    expect(popAll(turns)).toBe('a');
    turns.forget(1);
    expect(turns.queuedOf(1)).toBe(0);
    turns.setWeight(1, 2);
    turns.push(1, 1, 'again', 0);
    expect(popAll(turns)).toBe('again');
  }
});
