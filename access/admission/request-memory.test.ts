import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memoryUses, RequestMemory } from './request-memory.ts';

/** Bytes that a tenant gets by asking for `step` at a time until it is refused. */
function fill(memory: RequestMemory, tenant: number, step = 1): number {
  const account = memory.account(tenant);
  while (account.reserve('request', step));
  return account.usedBytes;
}

describe('request memory', () => {
  it('gives one tenant half of the budget, however it asks', () => {
    expect(fill(new RequestMemory({ maxBytes: 1000 }), 1)).toBe(500);
    const whole = new RequestMemory({ maxBytes: 1000 });
    expect(whole.account(1).reserve('reply', 501)).toBe(false);
    expect(whole.account(1).reserve('reply', 500)).toBe(true);
    expect(whole.refused).toBe(1);
  });

  it('gives n tenants that take all they can get 1/(n + 1) each', () => {
    for (const tenants of [2, 3, 9]) {
      const memory = new RequestMemory({ maxBytes: 10_000 });
      for (let round = 0; round < 10_000; round++) {
        for (let n = 1; n <= tenants; n++) memory.account(n).reserve('request', 1);
      }
      for (let n = 1; n <= tenants; n++) {
        expect(memory.heldBy(n)).toBeCloseTo(10_000 / (tenants + 1), -1);
      }
    }
  });

  it('always has room for a tenant that has nothing yet', () => {
    const memory = new RequestMemory({ maxBytes: 1 << 20 });
    for (let tenant = 1; tenant <= 8; tenant++) {
      const free = memory.maxBytes - memory.usedBytes;
      expect(fill(memory, tenant)).toBe(Math.floor(free / 2));
    }
  });

  it('takes back what is released, and forgets a tenant that holds nothing', () => {
    const memory = new RequestMemory({ maxBytes: 1000 });
    const account = memory.account(7);
    account.add('subscription', 900);
    expect(account.reserve('request', 1)).toBe(false);
    expect(memory.account(8).reserve('request', 51)).toBe(false);
    expect(memory.account(8).reserve('request', 50)).toBe(true);
    account.release('subscription', 900);
    expect([memory.tenants, memory.usedFor('subscription'), memory.peakBytes]).toEqual([1, 0, 950]);
    expect(account.reserve('request', 400)).toBe(true);
    expect(() => account.release('request', 401)).toThrow(RangeError);
  });

  it('goes by a changed budget from then on', () => {
    const memory = new RequestMemory({ maxBytes: 1000 });
    expect(fill(memory, 1)).toBe(500);
    memory.maxBytes = 100;
    expect(memory.account(2).reserve('request', 1)).toBe(false);
    memory.maxBytes = Infinity;
    expect(memory.account(2).reserve('request', 1e12)).toBe(true);
  });

  it('adds up by tenant and by use, and never grants beyond the budget', () => {
    const step = fc.record({
      tenant: fc.integer({ min: -1, max: 4 }),
      use: fc.constantFrom(...memoryUses),
      bytes: fc.integer({ min: 0, max: 400 }),
      gives: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const memory = new RequestMemory({ maxBytes: 1000 });
        const held = new Map<string, number>();
        for (const { tenant, use, bytes, gives } of steps) {
          const account = memory.account(tenant);
          const key = `${tenant} ${use}`;
          const before = held.get(key) ?? 0;
          if (gives) {
            account.release(use, before);
            held.delete(key);
          } else if (account.reserve(use, bytes)) held.set(key, before + bytes);
        }
        const total = [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
        expect(memory.usedBytes).toBe(total);
        expect(memory.usedBytes).toBeLessThanOrEqual(1000);
        for (const use of memoryUses) {
          const ofUse = [...held].filter(([key]) => key.endsWith(` ${use}`));
          expect(memory.usedFor(use)).toBe(ofUse.reduce((sum, [, bytes]) => sum + bytes, 0));
        }
      }),
    );
  });
});
