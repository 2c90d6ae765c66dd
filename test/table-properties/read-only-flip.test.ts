// A table is made read-only while clients write to it as fast as they can: once that is answered, no write is taken.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { until } from '../support/until.ts';
import { modelNames, type Subject, subjectOf } from './subjects.ts';

const writers = 8;
const flips = 4;

let server: Polyrow;
beforeAll(async () => {
  server = await Polyrow.start();
});
afterAll(() => server.remove());

/** When each write was sent that was taken, and how many were refused since the last look. */
class Load {
  written = 0;
  lastTaken = 0;
  refused = 0;
  #isRunning = true;
  readonly #loops: Promise<void>[];

  constructor(subjects: readonly Subject[]) {
    this.#loops = subjects.map((subject) => this.#loop(subject));
  }

  async #loop(subject: Subject): Promise<void> {
    while (this.#isRunning) {
      const sentAt = performance.now();
      try {
        await subject.write();
        this.written++;
        this.lastTaken = Math.max(this.lastTaken, sentAt);
      } catch (error) {
        if (!/READONLY|read-only/.test((error as Error).message)) throw error;
        this.refused++;
      }
    }
  }

  /** Resolves after some more writes of each writer. */
  async writes(): Promise<void> {
    const before = this.written;
    await until(() => this.written > before + 10 * writers);
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#loops);
  }
}

test.each(modelNames)('%s', async (model) => {
  const table = 1 + modelNames.indexOf(model);
  const subjects = Array.from({ length: writers }, (_, n) => subjectOf(model, server, table, n));
  const [first] = subjects;
  const { reference } = first!;
  const set = async (readOnly: boolean): Promise<void> => {
    const { status } = await server.askAdmin('PATCH', `/v1/tables/${reference}`, { readOnly });
    expect(status).toBe(200);
  };
  await server.askAdmin('POST', '/v1/tables', { table: reference, model });
  const load = new Load(subjects);
  for (let flip = 0; flip < flips; flip++) {
    await load.writes();
    await set(true);
    const answeredAt = performance.now();
    const held = await first!.count();
    load.refused = 0;
    await until(() => load.refused > 10 * writers);
    expect(load.lastTaken).toBeLessThan(answeredAt);
    expect(await first!.count()).toBe(held);
    await set(false);
  }
  await load.writes();
  await load.stop();
  // All that was taken is there, and nothing else.
  expect(await first!.count()).toBe(load.written);
  for (const subject of subjects) await subject.close();
});
