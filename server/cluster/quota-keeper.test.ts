// Shares of limits on request units, by what planes are told and what the leader answers to other nodes.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { shareLeaseMs, type QuotaShare } from '../../access/admission/shares/shared-quotas.ts';
import type { Json } from '../../control/metadata/document-store.ts';
import type { ControlHandler } from './cluster-metadata.ts';
import { QuotaKeeper } from './quota-keeper.ts';

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Node 1 of three, without tenants of its own. */
class Leader {
  isLeader = true;
  leader = 1;
  readonly #handlers = new Map<string, ControlHandler>();
  readonly #listeners = new Set<(isLeader: boolean, leader: number) => void>();
  readonly keeper: QuotaKeeper;

  constructor() {
    const metadata = {
      handlers: {
        on: (name: string, handler: ControlHandler) => void this.#handlers.set(name, handler),
      },
      nodes: () => [1, 2, 3].map((node) => ({ node }) as never),
      onLeader: (listener: (isLeader: boolean, leader: number) => void) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      ask: async () => ({}),
    };
    const roles = {
      isLeader: { get: () => this.isLeader },
      leader: { get: () => this.leader },
    };
    const idle = { isUp: false, call: () => Promise.reject(new Error('it is not up')) };
    type Arguments = ConstructorParameters<typeof QuotaKeeper>;
    this.keeper = new QuotaKeeper(
      Object.defineProperties(metadata, roles) as unknown as Arguments[0],
      { redis: idle, influx: idle } as unknown as Arguments[1],
    );
  }

  lead(leader: number): void {
    this.leader = leader;
    this.isLeader = leader === 1;
    for (const listener of this.#listeners) listener(this.isLeader, leader);
  }

  /** A busy node's share of a tenant's limit of 900 units. */
  async ask(node: number): Promise<number> {
    const demand = { tenant: 1, quota: 900, used: 300, lacking: 900 };
    const body = { redis: [demand] } as unknown as Json;
    const answer = await this.#handlers.get('quota/shares')!(body, { node, incarnation: 1 });
    return (answer as unknown as { redis: QuotaShare[] }).redis[0]!.share;
  }
}

test('a node that leads again gives out no share that another leader has given', async () => {
  const leader = new Leader();
  for (let second = 0; second < 5; second++) {
    for (const node of [1, 2, 3]) await leader.ask(node);
    await vi.advanceTimersByTimeAsync(1000);
  }
  leader.lead(2);
  // No report comes here before it leads again, so that all shares of before look abandoned.
  await vi.advanceTimersByTimeAsync(2 * shareLeaseMs);
  leader.lead(1);
  expect(await leader.ask(2)).toBeLessThanOrEqual(0.34);
  leader.keeper.close();
});
