import { expect, test } from 'vitest';
import { type Database, NotLeaderError } from '../../../contracts/series-store.ts';
import type { QuotaMode } from '../../../contracts/table-properties.ts';
import type { Caller } from '../tenants/caller.ts';
import type { Exchange } from './exchange.ts';
import { Parameters } from './parameters.ts';
import { WriteHandler } from './write-handler.ts';

test('a write that waits for its quota goes by the mode of the server once its replica has left the node', async () => {
  let isHere = true;
  const database: Database = { name: 'db', retentionPolicies: [], defaultRetentionPolicy: '' };
  const store = {
    database: (): Database => {
      if (!isHere) throw new NotLeaderError(0);
      return { ...database, quotaMode: 'hard' };
    },
  };
  const modes: QuotaMode[] = [];
  const gateway = {
    admitWrite: async (_exchange: Exchange, _tenant: number, mode: () => QuotaMode) => {
      modes.push(mode());
      isHere = false;
      modes.push(mode());
      throw new Error('it is refused');
    },
  };
  const handler = new WriteHandler({ gateway } as never);
  const exchange = { parameters: new Parameters('db=db') } as unknown as Exchange;
  const caller = { space: { number: 0, store } } as unknown as Caller;
  await expect(handler.v1(exchange, caller)).rejects.toThrow('it is refused');
  expect(modes).toEqual(['hard', 'server']);
});
