import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AccessPools, LeastRequests } from './access-pools.ts';

function poolsOf(pools: number, gateways: number): AccessPools {
  const all = new AccessPools();
  for (let p = 0; p < pools; p++) {
    all.addPool(`p${p}`);
    for (let g = 0; g < gateways; g++) all.addGateway(`p${p}`, `p${p}g${g}`, 1000);
  }
  return all;
}

test('a tenant goes where quotas over capacity are least', () => {
  const pools = new AccessPools({ tolerance: 0 });
  expect(() => pools.assign(0, 1)).toThrow(RangeError);
  pools.addPool('small');
  pools.addPool('large');
  pools.addPool('empty');
  pools.addGateway('small', 's', 100);
  pools.addGateway('large', 'l', 300);
  expect(pools.assign(1, 60)).toBe('small');
  expect(pools.assign(2, 60)).toBe('large');
  // 0.6 and 0.2, then 0.6 and 0.4.
  expect(pools.assign(3, 60)).toBe('large');
  expect(pools.assign(4, 90)).toBe('large');
  // 0.6 and 0.7.
  expect(pools.assign(5, 10)).toBe('small');
  pools.setQuota(1, 0);
  expect(pools.loadOf('small')).toBeCloseTo(0.1);
  pools.remove(5);
  expect(pools.loadOf('small')).toBe(0);
  expect(pools.loadOf('empty')).toBe(Infinity);
});

test('among loads that are about equal the pool with fewest tenants and routes is taken', () => {
  const pools = new AccessPools({ tolerance: 0.3 });
  for (const name of ['a', 'b']) {
    pools.addPool(name);
    pools.addGateway(name, `${name}1`, 100);
  }
  expect(pools.assign(1, 40)).toBe('a');
  for (const tenant of [2, 3]) expect(pools.assign(tenant, 15)).toBe('b');
  // 0.4 and 0.3, but one tenant and two.
  expect(pools.assign(4, 1, 30)).toBe('a');
  // As many tenants now, but 31 routes and two.
  expect(pools.assign(5, 1)).toBe('b');
});

test('a move goes from step to step as all have said that they are done', () => {
  const pools = poolsOf(2, 2);
  for (const balancer of ['b0', 'b1']) pools.addBalancer(balancer);
  expect(pools.assign(7, 100)).toBe('p0');
  pools.beginMove(7);
  expect(pools.beginMove(7)).toBeUndefined();
  const state = (): string => {
    const move = pools.moveOf(7);
    return `${pools.poolOf(7)} ${move?.phase} ${[...(move?.waitingFor ?? [])].join(',')}`;
  };
  expect(state()).toBe('p0 loading p1g0,p1g1');
  pools.acknowledge(7, 'loading', 'p1g0');
  pools.acknowledge(7, 'switching', 'p1g1');
  expect(state()).toBe('p0 loading p1g1');
  pools.removeGateway('p1g1');
  expect(state()).toBe('p1 switching b0,b1');
  expect(pools.cancelMove(7)).toBe(false);
  pools.acknowledge(7, 'switching', 'b0');
  pools.removeBalancer('b1');
  expect(state()).toBe('p1 draining p0g0,p0g1');
  expect(pools.tenantsOf('p0').has(7)).toBe(true);
  pools.acknowledge(7, 'draining', 'p0g0');
  pools.acknowledge(7, 'draining', 'p0g1');
  expect(state()).toBe('p1 undefined ');
  expect(pools.tenantsOf('p0').has(7)).toBe(false);
  expect(pools.loadOf('p0')).toBe(0);
  expect(pools.loadOf('p1')).toBeCloseTo(0.1);
});

test('a move waits while its target has no gateway, and can be given up until then', () => {
  const pools = poolsOf(2, 1);
  pools.assign(1, 10);
  pools.beginMove(1, 'p1');
  pools.removeGateway('p1g0');
  expect(pools.poolOf(1)).toBe('p0');
  expect(pools.cancelMove(1)).toBe(true);
  expect(pools.tenantsOf('p1').size).toBe(0);
  pools.beginMove(1, 'p1');
  pools.addGateway('p1', 'p1g9', 1000);
  expect(pools.poolOf(1)).toBe('p1');
});

const event = fc.record({
  kind: fc.constantFrom('move', 'ack', 'late', 'fail', 'return', 'cancel', 'quota'),
  tenant: fc.nat(5),
  which: fc.nat(7),
});

test('wherever a balancer may send a request, its tenant is known; loads are those of the tenants', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 300 }), (events) => {
      const pools = poolsOf(4, 2);
      const quotas = [10, 20, 30, 40, 50, 60];
      quotas.forEach((quota, tenant) => pools.assign(tenant, quota));
      const balancers = ['b0', 'b1'];
      for (const balancer of balancers) pools.addBalancer(balancer);
      // The balancers' and gateways' own state, from messages that they have acknowledged.
      const directed = balancers.map(() => quotas.map((_, tenant) => pools.poolOf(tenant)));
      for (const { kind, tenant, which } of events) {
        const move = pools.moveOf(tenant);
        const pool = `p${which >> 1}`;
        const gateway = `${pool}g${which & 1}`;
        if (kind === 'move') pools.beginMove(tenant, pool);
        else if (kind === 'cancel') pools.cancelMove(tenant);
        else if (kind === 'fail') pools.removeGateway(gateway);
        else if (kind === 'return') pools.addGateway(pool, gateway, 1000);
        else if (kind === 'late') pools.acknowledge(tenant, 'draining', gateway);
        else if (kind === 'quota') {
          quotas[tenant] = which * 10;
          pools.setQuota(tenant, which * 10);
        } else if (move !== undefined) {
          const who = [...move.waitingFor][which % Math.max(1, move.waitingFor.size)];
          if (who === undefined) continue;
          const balancer = balancers.indexOf(who);
          if (balancer >= 0) directed[balancer]![tenant] = move.to;
          pools.acknowledge(tenant, move.phase, who);
        }
        for (const known of directed) {
          for (const [t, at] of known.entries()) expect(pools.tenantsOf(at).has(t)).toBe(true);
        }
        for (const name of pools.pools()) {
          const gateways = [...pools.gatewaysOf(name)];
          if (gateways.length === 0) continue;
          const sum = [...pools.tenantsOf(name)].reduce((total, t) => total + quotas[t]!, 0);
          expect(pools.loadOf(name)).toBeCloseTo(sum / (gateways.length * 1000), 9);
        }
      }
    }),
  );
});

test('requests are spread by their number, also when a gateway comes back', () => {
  const balancer = new LeastRequests(4);
  const send = (n: number): number[] => {
    const got = [0, 0, 0, 0];
    for (let i = 0; i < n; i++) got[balancer.pick()]!++;
    return got;
  };
  expect(send(40)).toEqual([10, 10, 10, 10]);
  balancer.setUp(2, false);
  expect(send(300)).toEqual([100, 100, 0, 100]);
  balancer.setUp(2, true);
  expect(send(400)).toEqual([100, 100, 100, 100]);
  balancer.fade();
  expect(send(4)).toEqual([1, 1, 1, 1]);
  for (let i = 0; i < 4; i++) balancer.setUp(i, false);
  expect(balancer.pick()).toBe(-1);
  balancer.setUp(3, true);
  expect(balancer.pick()).toBe(3);
});
