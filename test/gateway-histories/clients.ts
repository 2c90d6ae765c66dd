// Clients of a history: each appends to lists and reads them through one node, some by transactions with watched keys or in pipelines.

import type { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import { lengthOf, type Lists } from './lists.ts';
import type { GatewayNode } from './node.ts';
import type { OwnedTimeline } from '../histories/owned-timeline.ts';
import type { FrontClient } from './redis-front.ts';

/** Shared by the clients of a history. */
export interface ClientsWorld {
  readonly timeline: OwnedTimeline;
  readonly lists: Lists;
  /** Elements take up to so many bytes more: a state of several parts. */
  readonly payload: number;
  /** Numbers the elements. */
  elements: number;
  readonly isOver: () => boolean;
}

const pipelined = ['read', 'append', 'append', 'other'] as const;
const select0 = ['select', '0'];
/** Lists that are appended to at the same time, and elements until they are others. */
const listsAtOnce = 3;
const elementsAList = 60;

export class ListClient {
  readonly #world: ClientsWorld;
  readonly #node: GatewayNode;
  readonly #random: Random;

  constructor(world: ClientsWorld, node: GatewayNode, random: Random) {
    this.#world = world;
    this.#node = node;
    this.#random = random;
  }

  /** Resolves when the faults are over. Rejects when an answer cannot be. */
  async run(): Promise<void> {
    const random = this.#random;
    let client: FrontClient | undefined;
    while (!this.#world.isOver()) {
      await this.#world.timeline.sleep(random.next() * 60);
      if (client === undefined || client.isGone) client = this.#node.connect();
      if (client === undefined) continue;
      const first = Math.floor(this.#world.elements / elementsAList);
      const key = `list${first + random.below(listsAtOnce)}`;
      const draw = random.next();
      if (draw < 0.2) await this.#pipeline(client, ['read'], key);
      else if (draw < 0.4) await this.#pipeline(client, ['append'], key);
      else if (draw < 0.65) {
        const most = 1 + random.below(6);
        const steps = Array.from({ length: most }, () => random.pick(pipelined));
        await this.#pipeline(client, steps, key);
      } else if (draw < 0.85) await this.#appendWatched(client, key);
      else await this.#pipeline(client, ['other'], key);
    }
  }

  /** Sends several commands at once. */
  async #pipeline(
    client: FrontClient,
    steps: readonly (typeof pipelined)[number][],
    key: string,
  ): Promise<void> {
    const { lists } = this.#world;
    const sent = steps.map((step) => {
      if (step === 'read') return { step, value: undefined, commands: [readOf(key)] };
      if (step === 'other') return { step, value: undefined, commands: this.#otherWrite() };
      const { value, element } = this.#newElement();
      return { step, value, commands: [['rpush', key, element]] };
    });
    const call = lists.call();
    const answers = await client.ask(...sent.flatMap(({ commands }) => commands));
    let at = 0;
    let [appended, seen] = [0, 0];
    for (const { step, value, commands } of sent) {
      const answer = answers[at];
      at += commands.length;
      if (step === 'other') continue;
      const done =
        value === undefined
          ? lists.read(key, call, answer)
          : lists.append(key, value, call, answer);
      if (done?.result === undefined) continue;
      // They run in their order. A read that is sent to the next leader together with writes that were done sees these.
      const length = lengthOf(done);
      if (length < (value === undefined ? seen : appended)) {
        throw new Error(`${key}: overtaken ${JSON.stringify(done)}`);
      }
      seen = Math.max(seen, length);
      if (value !== undefined) appended = length;
    }
  }

  #newElement(): { value: string; element: string } {
    const value = `v${++this.#world.elements}`;
    const filling = 'x'.repeat(this.#random.below(1 + this.#world.payload));
    return { value, element: `${value}${filling}` };
  }

  /** WATCH, LRANGE, MULTI, RPUSH, EXEC: it is appended behind what was read, or not at all. */
  async #appendWatched(client: FrontClient, key: string): Promise<void> {
    const { lists, timeline } = this.#world;
    const random = this.#random;
    const [watched] = await client.ask(['watch', key]);
    if (watched?.type !== '+') return;
    const asked = lists.call();
    const [read] = await client.ask(readOf(key));
    const before = lists.read(key, asked, read);
    if (before === undefined) {
      await client.ask(['unwatch']);
      return;
    }
    if (random.chance(0.3)) await timeline.sleep(random.next() * 300);
    const { value, element } = this.#newElement();
    const call = lists.call();
    const answers = await client.ask(['multi'], ['rpush', key, element], ['exec']);
    const answer = answers[2];
    const length = answer?.type === '*' ? answer.items[0] : answer;
    const done = lists.append(key, value, call, length);
    if (done.told === 'done' && lengthOf(done) !== lengthOf(before) + 1) {
      throw new Error(
        `${key}: a transaction ran though its key had changed: ${JSON.stringify(done)}`,
      );
    }
  }

  /** A write that is sent once. Nothing is expected of it but that all replicas have the same of it. */
  #otherWrite(): string[][] {
    const random = this.#random;
    const key = `k${random.below(30)}`;
    const n = random.below(6);
    const filled = 'x'.repeat(1 + random.below(random.chance(0.1) ? 60_000 : 400));
    const line = random.pick([
      ...[`set ${key} ${filled}`, `set ${key} ${filled}`, `hset ${key} f${n} ${filled}`],
      ...[`hdel ${key} f${n}`, `zadd ${key} ${n} m${n}`, `lpush ${key} e${n}`],
      ...[`rpop ${key}`, `rename ${key} k${n}`, `del ${key}`, `del ${key}`, `incr n${n}`],
      `pexpire ${key} ${random.below(900)}`,
      random.chance(0.1) ? 'flushdb' : 'swapdb 1 2',
    ]);
    // Table 0 is divided, and has the lists.
    const isWhole = line === 'flushdb' || line === 'swapdb 1 2';
    const table = random.pick(isWhole ? ['1', '2'] : ['0', '1', '2']);
    return [['select', table], line.split(' '), select0];
  }
}

function readOf(key: string): string[] {
  return ['lrange', key, '0', '-1'];
}
