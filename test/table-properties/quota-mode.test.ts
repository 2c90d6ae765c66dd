// The quota mode of a table, changed while clients of a tenant with a small quota send to it as fast as they can. Its
// plane has much to spare.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { RespClient } from '../support/resp-client.ts';

const quota = 20;
const clients = 8;
/** In which a change has to be in force. */
const flipMs = 1000;
const watchMs = 1000;

let server: Polyrow;
beforeAll(async () => {
  const capacity = ['--redis.ru-per-second', '20000', '--influx.ru-per-second', '20000'];
  const patience = ['--admission.command-wait-ms', '60000', '--admission.write-wait-ms', '60000'];
  server = await Polyrow.start({ flags: [...capacity, ...patience] });
  const limits = { ruPerSecond: quota };
  await ask('POST', '/v1/tenants', { name: 'red', password: 'red', limits });
  await statement('CREATE DATABASE d0');
  await statement('CREATE DATABASE d1');
  await ask('POST', '/v1/tenants/red/tables', { table: '1', model: 'kv' });
});
afterAll(() => server.remove());

async function ask(method: string, path: string, body: object): Promise<void> {
  const { status, body: answer } = await server.askAdmin(method, path, body);
  expect(status, JSON.stringify(answer)).toBeLessThan(300);
}

function post(path: string, body = ''): Promise<Response> {
  return fetch(`${server.influx}${path}&u=red&p=red`, { method: 'POST', body });
}

async function statement(q: string): Promise<void> {
  const answer = await post(`/query?q=${encodeURIComponent(q)}`);
  expect(await answer.text()).not.toContain('error');
}

/** Clients that write to one table, each one after the other. */
class Load {
  written = 0;
  #isRunning = true;
  readonly #loops: Promise<void>[];

  constructor(write: (n: number) => Promise<void>) {
    this.#loops = Array.from({ length: clients }, async (_, n) => {
      while (this.#isRunning) {
        await write(n);
        this.written++;
      }
    });
  }

  /** A second, once what was changed has to be in force. */
  async perSecond(): Promise<number> {
    await sleep(flipMs);
    const before = this.written;
    await sleep(watchMs);
    return (1000 * (this.written - before)) / watchMs;
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#loops);
  }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Writes to two databases of one kind, each costs about one unit. */
interface Kind {
  readonly name: string;
  readonly tables: readonly [string, string];
  writers(): Promise<readonly ((table: number, client: number) => Promise<void>)[]>;
  end(): void;
}

class RedisKind implements Kind {
  readonly name: string;
  readonly tables: readonly [string, string];
  readonly #open: RespClient[] = [];

  constructor(name: string, tables: readonly [string, string]) {
    this.name = name;
    this.tables = tables;
  }

  async writers(): Promise<readonly ((table: number, client: number) => Promise<void>)[]> {
    const perTable = await Promise.all(this.tables.map((table) => this.#clients(table)));
    return perTable.map((all) => async (_table: number, n: number) => {
      expect(await all[n]!.text('SET', `k${n}`, 'v')).toBe('+OK');
    });
  }

  async #clients(table: string): Promise<RespClient[]> {
    return Promise.all(
      Array.from({ length: clients }, async () => {
        const client = await RespClient.connect(server.redisPort);
        this.#open.push(client);
        expect(await client.text('AUTH', 'red', 'red')).toBe('+OK');
        expect(await client.text('SELECT', table)).toBe('+OK');
        return client;
      }),
    );
  }

  end(): void {
    for (const client of this.#open) client.close();
  }
}

class InfluxKind implements Kind {
  readonly name = 'series';
  readonly tables = ['d0', 'd1'] as const;
  #time = 0;

  writers(): Promise<readonly ((table: number, client: number) => Promise<void>)[]> {
    const write = async (table: number, n: number): Promise<void> => {
      const answer = await post(`/write?db=${this.tables[table]!}`, `m,n=${n} v=1 ${++this.#time}`);
      expect(answer.status).toBe(204);
    };
    return Promise.resolve([write, write]);
  }

  end(): void {}
}

const kinds: readonly Kind[] = [
  new RedisKind('memory', ['0', '2']),
  new RedisKind('kv', ['1', '3']),
  new InfluxKind(),
];

/** Which of them have far more than the quota. What one costs is not exactly a unit. */
async function haveMore(...loads: readonly Load[]): Promise<boolean[]> {
  const rates = await Promise.all(loads.map((load) => load.perSecond()));
  return rates.map((rate) => rate > 4 * quota);
}

describe.each(kinds)('$name', (kind) => {
  const setMode = (table: number, quotaMode: string): Promise<void> =>
    ask('PATCH', `/v1/tenants/red/tables/${kind.tables[table]!}`, { quotaMode });

  test('goes by its own mode, at once, and others go by theirs', async () => {
    const [first, second] = await kind.writers();
    const own = new Load((n) => first!(0, n));
    expect(await haveMore(own)).toEqual([false]);
    await setMode(0, 'stacked');
    expect(await haveMore(own)).toEqual([true]);
    // Its neighbour has the quota, and no more, while it has what others leave.
    const other = new Load((n) => second!(1, n));
    expect(await haveMore(own, other)).toEqual([true, false]);
    // The mode of the server is for those that have none.
    await ask('PATCH', '/v1/config', { 'admission.allocation': 'stacked' });
    await setMode(0, 'hard');
    expect(await haveMore(own, other)).toEqual([false, true]);
    // Queued requests are admitted.
    await ask('PATCH', '/v1/config', { 'admission.mode': 'off' });
    await Promise.all([own.stop(), other.stop()]);
    kind.end();
    await ask('PATCH', '/v1/config', {
      'admission.allocation': 'hard',
      'admission.mode': 'enforce',
    });
  });
});
