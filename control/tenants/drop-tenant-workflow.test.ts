import { expect, test } from 'vitest';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { MemoryStore } from '../metadata/memory-store-fixture.ts';
import { hasEnded, type WorkflowDefinition } from '../workflows/workflow.ts';
import { locks, Mortal, VirtualTimers } from '../workflows/workflow-fixture.ts';
import { dropTenantRequest, dropTenantWorkflow } from './drop-tenant-workflow.ts';

const tenant = { name: 'shop', number: 7 } as TenantDefinition;

/** What a tenant consists of; several calls remove its documents. */
class Holdings {
  isServed = true;
  rows = 3;
  documents = ['table', 'user', 'tenant'];
  /** Things that were done in the wrong order. */
  readonly faults: string[] = [];

  /** Each change happens between two points at which the process may die, and half-way through one. */
  workflow(process: Mortal): WorkflowDefinition {
    const change = async (work: () => void): Promise<void> => {
      await process.point();
      work();
      await process.point();
    };
    return dropTenantWorkflow({
      find: (name) =>
        name === tenant.name && this.documents.includes('tenant') ? tenant : undefined,
      publish: () => change(() => (this.isServed = false)),
      dropData: async () => {
        if (this.isServed) this.faults.push('rows went while clients could write');
        while (this.rows > 0) await change(() => this.rows--);
      },
      removeSome: async () => {
        if (this.rows > 0) this.faults.push('documents went before the rows');
        await change(() => this.documents.shift());
        return this.documents.length === 0;
      },
    });
  }
}

test('the drop of a tenant ends whole, wherever the process dies, and the one that goes on', async () => {
  let deaths = 0;
  for (let diesAt = 0; ; diesAt++) {
    const store = new MemoryStore();
    const timers = new VirtualTimers();
    const holdings = new Holdings();
    const asker = await Mortal.start(store, timers, (process) => [holdings.workflow(process)]);
    await asker.engine.close();
    const request = dropTenantRequest(tenant);
    await store.write([{ ...asker.engine.submission(...request), expected: 0 }]);

    const start = (at: number): Promise<Mortal> =>
      Mortal.start(store, timers, (process) => [holdings.workflow(process)], { diesAt: at });
    let process = await start(diesAt);
    // The second process dies as well, a few points on; the third one lives.
    for (const next of [5, Infinity]) {
      await timers.until(() => process.isDead || hasEnded(process.engine.find(request[0])!));
      if (!process.isDead) break;
      deaths++;
      process = await start(next);
    }
    await timers.until(() => hasEnded(process.engine.find(request[0])!));
    const told = `dies at ${diesAt}`;
    expect(process.engine.find(request[0])!.status, told).toBe('done');
    expect(holdings, told).toMatchObject({ isServed: false, rows: 0, documents: [], faults: [] });
    expect(locks(store), told).toEqual([]);
    const survived = process.points <= diesAt;
    await process.engine.close();
    if (survived && diesAt > 60) break;
  }
  expect(deaths).toBeGreaterThan(30);
});
