// Clients that write what can be checked after a crash, and the check.
//
// Each client owns three keys, and goes through the same three writes again and again, several of them in
// flight at once:
//
//   INCR counter:<c>     RPUSH list:<c> <n>     SADD set:<c> <n>       n = 1, 2, 3 ...
//
// Its connection's writes are ordered, so what survives must be a prefix of what it sent: the three keys
// tell the same prefix, give or take the write at which it was cut, and nothing twice.

import { expect } from 'vitest';
import type { Polyrow } from '../support/polyrow.ts';
import type { RespClient, Word } from '../support/resp-client.ts';
import { itemsOf, show, textOf } from '../support/resp-value.ts';
import type { Random } from '../support/random.ts';

const writesPerRound = 3;

export class CrashWriter {
  readonly name: string;
  /** Writes sent and answered since the beginning, over all incarnations of the server. */
  sent = 0;
  acknowledged = 0;
  readonly #random: Random;
  #stopped = false;

  constructor(name: string, random: Random) {
    this.name = name;
    this.#random = random;
  }

  /** Writes until the connection is lost. */
  async run(client: RespClient): Promise<void> {
    this.#stopped = false;
    // Until the connection is gone, pipelines of different lengths follow one another.
    while (!this.#stopped && !client.closed) {
      const commands: Word[][] = [];
      for (let i = 1 + this.#random.below(24); i > 0; i--) commands.push(this.#next());
      let answers = 0;
      client.onReply = (reply) => {
        if (reply.type !== ':') throw new Error(`${this.name} was answered ${show(reply)}`);
        answers++;
        this.acknowledged++;
      };
      try {
        await client.pipeline(commands);
      } catch (error) {
        if (!client.closed) throw error;
        return;
      }
      expect(answers).toBe(commands.length);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  #next(): Word[] {
    const n = Math.floor(this.sent / writesPerRound) + 1;
    // The padding makes log and checkpoints big enough to be cut everywhere.
    const value = `${n}${':'.padEnd(n % 200, 'x')}`;
    switch (this.sent++ % writesPerRound) {
      case 0:
        return ['INCR', `counter:${this.name}`];
      case 1:
        return ['RPUSH', `list:${this.name}`, value];
      default:
        return ['SADD', `set:${this.name}`, value];
    }
  }

  /** Counts the writes that are there, which must be a prefix of those sent, and goes on from there. */
  async verify(client: RespClient): Promise<number> {
    const [counter, list, set] = await client.pipeline([
      ['GET', `counter:${this.name}`],
      ['LRANGE', `list:${this.name}`, 0, -1],
      ['SMEMBERS', `set:${this.name}`],
    ]);
    const increments = 'text' in counter! ? Number(counter.text) : 0;
    const elements = itemsOf(list!).map((item) => parseInt(textOf(item)));
    const members = itemsOf(set!).map((item) => parseInt(textOf(item)));
    const survived = increments + elements.length + members.length;
    // Twice, lost in the middle or out of order would all show here.
    const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
    expect(elements, `${this.name}: elements`).toEqual(upTo(elements.length));
    expect(
      members.sort((a, b) => a - b),
      `${this.name}: members`,
    ).toEqual(upTo(members.length));
    const prefix = [0, 1, 2].map((k) => Math.floor((survived + 2 - k) / writesPerRound));
    expect([increments, elements.length, members.length], `${this.name}: not a prefix`).toEqual(
      prefix,
    );
    expect(survived, `${this.name}: more than was sent`).toBeLessThanOrEqual(this.sent);
    return survived;
  }

  /** The next life begins with what survived. */
  continueFrom(survived: number): void {
    this.sent = survived;
    this.acknowledged = survived;
  }
}

export async function emptied(server: Polyrow, writers: readonly CrashWriter[]): Promise<void> {
  const client = await server.client();
  await client.command('FLUSHALL');
  client.close();
  for (const writer of writers) writer.continueFrom(0);
}
