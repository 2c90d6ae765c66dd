import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GossipShare } from './gossip-share.ts';

function fleet(quota: number, n: number): GossipShare[] {
  return Array.from({ length: n }, (_, i) => new GossipShare(quota, othersOf(i, n), 0));
}

function othersOf(i: number, n: number): string[] {
  return Array.from({ length: n }, (_, j) => String(j)).filter((name) => name !== String(i));
}

/** All send to all, and hear at once. */
function exchange(servers: readonly GossipShare[], now: number): void {
  servers.forEach((server, i) => {
    const rate = server.endPeriod(now);
    servers.forEach((other, j) => {
      if (i !== j) other.receive(String(i), rate, now);
    });
  });
}

test('shares come to the quota, and follow what is asked of each', () => {
  const rates = fc.array(fc.nat(10_000), { minLength: 2, maxLength: 8 });
  fc.assert(
    fc.property(rates, (asked) => {
      const servers = fleet(1000, asked.length);
      asked.forEach((units, i) => servers[i]!.observe(units));
      exchange(servers, 1000);
      const sum = servers.reduce((all, server) => all + server.share(), 0);
      expect(sum).toBeCloseTo(1000, 6);
      const total = asked.reduce((all, units) => all + units, 0);
      if (total === 0) return;
      servers.forEach((server, i) => {
        const fair = 1000 * (0.02 / asked.length + (0.98 * asked[i]!) / total);
        expect(server.share()).toBeCloseTo(fair, 6);
      });
    }),
  );
});

test('equal shares before anything is known, and without demand', () => {
  const servers = fleet(900, 3);
  expect(servers[0]!.share()).toBe(300);
  exchange(servers, 1000);
  expect(servers[2]!.share()).toBe(300);
});

test('a server that is silent for long counts no more', () => {
  const [one] = fleet(900, 3);
  one!.receive('1', 500, 500);
  one!.receive('2', 500, 500);
  for (let now = 1000; now <= 3000; now += 1000) {
    one!.observe(500);
    one!.endPeriod(now);
    one!.receive('1', 500, now);
  }
  expect(one!.share()).toBeCloseTo(300, 0);
  one!.observe(500);
  one!.endPeriod(4000);
  expect(one!.share()).toBeCloseTo(450, 0);
  one!.forget('1');
  expect(one!.share()).toBeCloseTo(900, 0);
  one!.setQuota(90);
  expect(one!.share()).toBeCloseTo(90, 0);
});
