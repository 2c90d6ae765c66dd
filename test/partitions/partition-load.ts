// A client that writes keys of a table while its partitions change, and knows afterwards what must be there: nothing that
// was answered is lost, and nothing is done twice.

import { expect } from 'vitest';
import type { PartitionOrder, TablePartitions } from '../../control/metadata/partition-catalog.ts';
import type { Random } from '../support/random.ts';
import { texts } from './reply-items.ts';
import { ConnectionLost, type RespClient } from '../support/resp-client.ts';

const keysEach = 40;
const mostPartitions = 6;

/** A change that is possible now. */
export function chooseChange({ partitions: all }: TablePartitions, random: Random): PartitionOrder {
  const at = random.below(all.length);
  const one = all[at]!;
  const next = all[at + 1];
  const kind = random.below(3);
  if (kind === 0 && next?.model === one.model) {
    return { kind: 'merge', partitions: [one.number, next.number] };
  }
  if (kind === 1 && all.length < mostPartitions && one.first < one.last) {
    const slots = one.last - one.first;
    return { kind: 'split', partition: one.number, at: one.first + 1 + random.below(slots) };
  }
  const model = one.model === 'memory' ? 'kv' : 'memory';
  return { kind: 'move', partition: one.number, model };
}

export class PartitionLoad {
  /** Commands that were answered. */
  answered = 0;
  /** Milliseconds that the slowest answer took. */
  slowest = 0;
  readonly #name: string;
  readonly #random: Random;
  readonly #counters = Array.from({ length: keysEach }, () => 0);
  readonly #lists = Array.from({ length: keysEach }, () => 0);
  /** Which key has the row that is renamed again and again. */
  #at = 0;
  /** Request in progress when the connection was lost: it may or may not have been applied. */
  #unknown: { kind: 'counter' | 'list' | 'rename'; key: number } | undefined;
  #stopped = false;

  constructor(name: string, random: Random) {
    this.#name = name;
    this.#random = random;
  }

  async begin(client: RespClient): Promise<void> {
    await client.command('SET', this.#moving(0), this.#name);
  }

  #moving(key: number): string {
    return `${this.#name}:moving:${key}`;
  }

  /** `slowest` since the last call. */
  takeSlowest(): number {
    const { slowest } = this;
    this.slowest = 0;
    return slowest;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Until `stop`, or until the connection is lost. */
  async run(client: RespClient): Promise<void> {
    this.#stopped = false;
    try {
      while (!this.#stopped) await this.#step(client);
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
  }

  async #step(client: RespClient): Promise<void> {
    const key = this.#random.below(keysEach);
    const kind = (['counter', 'counter', 'list', 'rename'] as const)[this.#random.below(4)]!;
    this.#unknown = { kind, key };
    const began = performance.now();
    if (kind === 'counter') {
      const reply = await client.text('INCR', `${this.#name}:counter:${key}`);
      expect(reply, 'INCR').toBe(`:${++this.#counters[key]!}`);
    } else if (kind === 'list') {
      const reply = await client.text('RPUSH', `${this.#name}:list:${key}`, this.#lists[key]!);
      expect(reply, 'RPUSH').toBe(`:${++this.#lists[key]!}`);
    } else {
      const reply = await client.text('RENAME', this.#moving(this.#at), this.#moving(key));
      if (reply === '+OK') this.#at = key;
      else expect(reply, 'RENAME').toMatch(/CROSSSLOT/);
    }
    this.#unknown = undefined;
    this.answered++;
    this.slowest = Math.max(this.slowest, performance.now() - began);
  }

  /** Compares all keys with what they must be, and goes on from what they are. */
  async verify(client: RespClient, where: string): Promise<void> {
    const lost = this.#unknown;
    this.#unknown = undefined;
    for (let key = 0; key < keysEach; key++) {
      const found = await client.command('GET', `${this.#name}:counter:${key}`);
      const counter = 'text' in found ? Number(found.text) : 0;
      const list = texts(await client.command('LRANGE', `${this.#name}:list:${key}`, 0, -1));
      const mayBeMore = (kind: string): number => (lost?.kind === kind && lost.key === key ? 1 : 0);
      const check = (found: number, known: number, kind: string): void => {
        expect(found, `${where}: ${this.#name} ${kind} ${key}`).toBeGreaterThanOrEqual(known);
        expect(found, `${where}: ${this.#name} ${kind} ${key}`).toBeLessThanOrEqual(
          known + mayBeMore(kind),
        );
      };
      check(counter, this.#counters[key]!, 'counter');
      check(list.length, this.#lists[key]!, 'list');
      expect(list, `${where}: ${this.#name} list ${key}`).toEqual(list.map((_, i) => String(i)));
      this.#counters[key] = counter;
      this.#lists[key] = list.length;
    }
    await this.#verifyMoving(client, where, lost?.kind === 'rename' ? lost.key : this.#at);
  }

  async #verifyMoving(client: RespClient, where: string, perhaps: number): Promise<void> {
    const places: number[] = [];
    for (let key = 0; key < keysEach; key++) {
      if ((await client.text('EXISTS', this.#moving(key))) === ':1') places.push(key);
    }
    expect(places, `${where}: ${this.#name} the renamed row`).toHaveLength(1);
    expect([this.#at, perhaps], `${where}: ${this.#name} the renamed row`).toContain(places[0]);
    this.#at = places[0]!;
  }
}
