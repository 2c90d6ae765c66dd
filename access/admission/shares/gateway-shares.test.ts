import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GatewayShares } from './gateway-shares.ts';

function total(shares: GatewayShares): number {
  let sum = 0;
  for (const gateway of shares.gateways()) sum += shares.of(gateway);
  return sum;
}

const change = fc.oneof(
  fc.record({ kind: fc.constant('join' as const), gateway: fc.nat(12) }),
  fc.record({ kind: fc.constant('leave' as const), gateway: fc.nat(12) }),
  fc.record({ kind: fc.constant('quota' as const), to: fc.integer({ min: 1, max: 1_000_000 }) }),
  fc.record({
    kind: fc.constant('move' as const),
    from: fc.nat(12),
    to: fc.nat(12),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
);

test('whatever joins, leaves, changes or moves, the shares come to the quota', () => {
  let changes = 0;
  fc.assert(
    fc.property(fc.array(change, { minLength: 500, maxLength: 1500 }), (all) => {
      const shares = new GatewayShares(30_000, ['0', '1', '2']);
      for (const step of all) {
        changes++;
        if (step.kind === 'join') shares.join(String(step.gateway));
        else if (step.kind === 'leave') shares.leave(String(step.gateway));
        else if (step.kind === 'quota') shares.setQuota(step.to);
        else {
          const [from, to] = [String(step.from), String(step.to)];
          if (shares.of(from) > 0 && shares.of(to) > 0) {
            shares.move(shares.of(from) * step.part, new Map([[from, 1]]), new Map([[to, 1]]));
          }
        }
        if (shares.count === 0) continue;
        expect(Math.abs(total(shares) - shares.quota)).toBeLessThan(1e-6);
        for (const gateway of shares.gateways()) {
          expect(shares.of(gateway)).toBeGreaterThanOrEqual(0);
        }
      }
    }),
    { numRuns: 60 },
  );
  expect(changes).toBeGreaterThan(30_000);
});

test('who comes gets an equal share; who goes leaves his in proportion', () => {
  const shares = new GatewayShares(900, ['a', 'b']);
  shares.move(150, new Map([['a', 1]]), new Map([['b', 1]]));
  expect([shares.of('a'), shares.of('b')]).toEqual([300, 600]);
  shares.join('c');
  expect([shares.of('a'), shares.of('b'), shares.of('c')]).toEqual([200, 400, 300]);
  shares.leave('c');
  expect(shares.of('a')).toBeCloseTo(300, 9);
  expect(shares.of('b')).toBeCloseTo(600, 9);
  shares.setQuota(90);
  expect(shares.of('b')).toBeCloseTo(60, 9);
  for (const gateway of ['a', 'b']) shares.leave(gateway);
  shares.join('d');
  expect(shares.of('d')).toBe(90);
  expect(shares.of('e')).toBe(0);
});
