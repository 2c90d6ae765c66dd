import { expect, test } from 'vitest';
import { noLimits } from '../../contracts/tenancy/definitions.ts';
import { QueueAll } from '../../storage-node/pod-admission-fixture.ts';
import { LiveConfig } from '../settings/live-config.ts';
import { defaultConfig } from '../settings/schema.ts';
import { PlaneAdmission } from './plane-admission.ts';

/** Units a second that a tenant with a limit of 900 may spend here at the start, and once shares are told. */
function unitsOf(nodes: number): [atStart: number, told: number] {
  const admission = new PlaneAdmission({
    plane: 'redis',
    live: new LiveConfig({
      ...defaultConfig(),
      'data-dir': 'somewhere',
      'admission.mode': 'enforce',
    }),
    accountOf: () => undefined,
    pod: new QueueAll(),
    nodes,
    warn: () => {},
  });
  const definition = {
    name: 't',
    number: 1,
    state: 'active',
    firstTable: 16,
    databases: 16,
  } as const;
  const limits = { ...noLimits, ruPerSecond: 900 };
  const limiter = admission.gateway.follow({ ...definition, limits })!;
  const atStart = limiter.quota.perSecond;
  admission.setShares({ usual: 1 / nodes, shares: [{ tenant: 1, share: 0.5 }] });
  const told = limiter.quota.perSecond;
  admission.close();
  return [atStart, told];
}

test('a node of a cluster has an equal part of all limits until it is told its share', () => {
  expect(unitsOf(3)).toEqual([300, 450]);
  expect(unitsOf(1)).toEqual([900, 450]);
});
