// The whole server with tenants whose request units are limited, as an operator makes them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Polyrow } from '../support/polyrow.ts';
import { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';

export class LimitedPolyrow {
  readonly server: Polyrow;

  private constructor(server: Polyrow) {
    this.server = server;
  }

  static async start(flags: readonly string[] = []): Promise<LimitedPolyrow> {
    return new LimitedPolyrow(await Polyrow.start({ flags }));
  }

  get port(): number {
    return this.server.redisPort;
  }

  /** Its password is its name. A quota of 0 is none. */
  async tenant(name: string, ruPerSecond: number, burstRu = 0): Promise<void> {
    const limits = { ruPerSecond, burstRu };
    await this.#admin('POST', '/tenants', { name, password: name, limits });
  }

  async quota(name: string, ruPerSecond: number): Promise<void> {
    await this.#admin('PATCH', `/tenants/${name}`, { limits: { ruPerSecond } });
  }

  async client(name: string): Promise<RespClient> {
    const client = await this.server.client();
    const answer = await client.text('AUTH', name, name);
    if (answer !== '+OK') throw new Error(`AUTH ${name}: ${answer}`);
    return client;
  }

  /** Fields of `RU STATS`, and `seconds`: when that was, by the server's clock. */
  static async stats(client: RespClient): Promise<Map<string, number>> {
    const [time, reply] = await client.pipeline([['TIME'], ['RU', 'STATS']]);
    if (reply?.type !== '*' || time?.type !== '*') throw new Error(show(reply!));
    const [seconds, micros] = time.items.map((item) => ('text' in item ? Number(item.text) : NaN));
    const stats = new Map([['seconds', seconds! + micros! / 1e6]]);
    for (let i = 0; i + 1 < reply.items.length; i += 2) {
      const [name, value] = [reply.items[i]!, reply.items[i + 1]!];
      if ('text' in name && 'text' in value) stats.set(name.text, Number(value.text));
    }
    return stats;
  }

  async metrics(): Promise<string> {
    return (await fetch(`${this.server.admin}/metrics`)).text();
  }

  async #admin(method: string, path: string, body: object): Promise<void> {
    const token = readFileSync(join(this.server.dataDir, 'admin-token'), 'utf8').trim();
    const answer = await fetch(`${this.server.admin}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.server.remove();
  }
}
