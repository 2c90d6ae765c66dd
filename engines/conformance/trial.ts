// One engine under test, driven as a pod drives it: a step is a log entry, run again from its start
// after a `ReadFault`; steps end their turn. Holds the checks that every case ends with.

import assert from 'node:assert/strict';
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import { ReadFault } from '../../universal-row/errors.ts';
import { Shape, type Row } from '../../universal-row/rows.ts';
import { applyBatch } from '../apply.ts';
import type { Engine } from '../engine.ts';
import { assertSameContents, decodeSnapshot, rowName, type EngineContents } from './contents.ts';
import { Verbs } from './verbs.ts';

export interface Supports {
  /** `rollback` undoes; an engine that throws `ReadFault` must. */
  rollback: boolean;
  /** True if the engine restores the contents of its directory when reopened. */
  reopen: boolean;
}

/** An engine as the kit sees it. */
export interface Subject {
  readonly model: string;
  readonly supports: Supports;
  /** An engine that is not open. With the directory of a closed one it carries on from there. */
  create(directory: string): Engine;
  /** Returns an unused directory. */
  newDirectory(): string;
}

/** One command: may run more than once, so it changes nothing but the engine. */
export type Step<T> = (verbs: Verbs, engine: Engine) => T;

// A step that faults this often makes no progress.
const faultsLimit = 50_000;
// After so many steps the event loop runs, so that the engine's background work proceeds.
const stepsPerTick = 16;
const settleMs = 10_000;

export class Trial {
  readonly subject: Subject;
  readonly directory: string;
  engine: Engine;
  /** Log index of the last entry. */
  index: number;
  #steps = 0;
  readonly #others: Trial[] = [];

  private constructor(subject: Subject, directory: string, engine: Engine) {
    this.subject = subject;
    this.directory = directory;
    this.engine = engine;
    this.index = engine.appliedIndex;
  }

  static async open(subject: Subject, directory = subject.newDirectory()): Promise<Trial> {
    const engine = subject.create(directory);
    assert.equal(engine.model, subject.model);
    await engine.open();
    return new Trial(subject, directory, engine);
  }

  async close(): Promise<void> {
    await this.engine.close();
    for (const other of this.#others.splice(0)) await other.close();
  }

  /** Another engine, closed together with this one. */
  async another(subject: Subject = this.subject): Promise<Trial> {
    const other = await Trial.open(subject);
    this.#others.push(other);
    return other;
  }

  /** Closes the engine and opens its directory again. */
  async reopen(): Promise<void> {
    await this.engine.close();
    this.engine = this.subject.create(this.directory);
    await this.engine.open();
  }

  /** Makes the state durable, and opens it again. */
  async checkpointAndReopen(): Promise<void> {
    const index = await this.engine.checkpoint();
    assert.equal(
      index,
      this.index,
      'a checkpoint holds every entry when none is written meanwhile',
    );
    await this.reopen();
    assert.equal(this.engine.appliedIndex, this.index, 'appliedIndex after the reopen');
  }

  // ---- steps

  /** Runs a step on table 0 as the next log entry. */
  run<T>(step: Step<T>): Promise<T> {
    return this.#attempt(step, () => {
      this.engine.commit(++this.index);
      this.engine.endTick();
    });
  }

  /** Runs a step that writes nothing, and so is no log entry. */
  read<T>(step: Step<T>): Promise<T> {
    return this.#attempt(step, () => this.engine.endTick());
  }

  /** Runs a step and then undoes it. */
  undone<T>(step: Step<T>): Promise<T> {
    return this.#attempt(step, () => {
      this.engine.rollback();
      this.engine.endTick();
    });
  }

  /** Applies a batch of ops as entry `index`. */
  async apply(batch: Buffer, index = this.index + 1): Promise<void> {
    await this.#attempt(
      () => applyBatch(this.engine, batch, 0, batch.length, index),
      () => this.engine.endTick(),
    );
    this.index = Math.max(this.index, index);
  }

  async #attempt<T>(step: Step<T>, finish: () => void): Promise<T> {
    if (++this.#steps % stepsPerTick === 0) await nextTick();
    for (let faults = 0; faults < faultsLimit; faults++) {
      try {
        const result = step(new Verbs(this.engine.table(0)), this.engine);
        finish();
        assert.equal(this.engine.failure, undefined, 'no failure');
        return result;
      } catch (error) {
        if (!(error instanceof ReadFault)) throw error;
        this.engine.rollback();
        await error.ready;
      }
    }
    assert.fail(`a step faulted ${faultsLimit} times: it makes no progress`);
  }

  /** Fills rows of any table, a large one in several steps. */
  async fill(contents: EngineContents): Promise<void> {
    for (const [name, content] of contents) {
      const { table, key } = parseRowName(name);
      const { items } = content;
      const step = Math.max(2, 2 * Math.ceil(1000 / Math.max(2, String(items[0]).length)));
      const first = content.shape >= Shape.stream ? step + 1 : step;
      await this.run((_, engine) => {
        new Verbs(engine.table(table)).fill(key, { ...content, items: items.slice(0, first) });
      });
      if (content.shape === Shape.value) continue;
      for (let i = first; i < items.length; i += step) {
        await this.run((_, engine) => {
          const verbs = new Verbs(engine.table(table));
          verbs.extend(verbs.row(key), { ...content, items: items.slice(i, i + step) });
        });
      }
    }
  }

  /** Does all the work that was left for later; some of it may wait for the disk. */
  async settle(): Promise<void> {
    const end = performance.now() + settleMs;
    while (performance.now() < end) {
      const more = this.engine.background(5);
      this.engine.endTick();
      await nextTick();
      if (!more) return;
      await sleep(1);
    }
    assert.fail(`the background work has not ended after ${settleMs} ms`);
  }

  // ---- checks

  /** All rows, by walking them. */
  async contents(): Promise<EngineContents> {
    const contents: EngineContents = new Map();
    for (const table of this.engine.tables()) {
      for (const key of await this.keys(table)) {
        const content = await this.read((_, engine) => new Verbs(engine.table(table)).content(key));
        contents.set(rowName(table, key), content);
      }
    }
    return contents;
  }

  /** The keys of a table, by a scan. */
  async keys(table = 0, budget = 100): Promise<Set<string>> {
    const keys = new Set<string>();
    let cursor = 0;
    do {
      const { next, found } = await this.scan(table, cursor, budget);
      for (const key of found) keys.add(key);
      cursor = next;
    } while (cursor !== 0);
    return keys;
  }

  scan(table: number, cursor: number, budget: number): Promise<{ next: number; found: string[] }> {
    return this.read((_, engine) => {
      const verbs = new Verbs(engine.table(table));
      const found: string[] = [];
      const next = verbs.table.scan(cursor, budget, (row) => {
        found.push(verbs.keyOf(row));
      });
      assertCursor(next);
      return { next, found };
    });
  }

  /** Checks that these are the rows, by reads, by the counters and by an export. */
  async check(expected: EngineContents): Promise<void> {
    assertSameContents(await this.contents(), expected, 'rows read');
    await this.checkCounters(expected);
    const exported = await decodeSnapshot(this.engine.exportSnapshot());
    assertSameContents(exported, expected, 'rows exported');
  }

  async checkCounters(expected: EngineContents): Promise<void> {
    const tables = new Map<number, { rows: number; expiring: string[] }>();
    for (const [name, content] of expected) {
      const { table, key } = parseRowName(name);
      const counts = tables.get(table) ?? { rows: 0, expiring: [] };
      tables.set(table, counts);
      counts.rows++;
      if (content.expireAt !== 0) counts.expiring.push(key);
    }
    const numbers = [...tables.keys()].sort((a, b) => a - b);
    assert.deepEqual(this.engine.tables(), numbers, 'tables()');
    assert.equal(this.engine.stats().rows, expected.size, 'stats().rows');
    for (const [number, { rows, expiring }] of tables) {
      const found = await this.read((_, engine) => {
        const table = engine.table(number);
        const keys: string[] = [];
        table.expired(Number.MAX_SAFE_INTEGER, expiring.length + 10, (row) => {
          keys.push(new Verbs(table).keyOf(row));
        });
        return { rows: table.rowCount(), expiring: table.expiringRows, keys };
      });
      assert.equal(found.rows, rows, `rowCount of table ${number}`);
      assert.equal(found.expiring, expiring.length, `expiringRows of table ${number}`);
      assert.deepEqual(found.keys.sort(), expiring.sort(), `expired rows of table ${number}`);
    }
  }
}

export function assertCursor(cursor: number): void {
  assert.ok(Number.isSafeInteger(cursor) && cursor >= 0, `a cursor below 2^53, not ${cursor}`);
}

/** Keys of the rows that are due, as `expired` lists them. */
export function due(verbs: Verbs, now: number, limit: number): string[] {
  const rows: Row[] = [];
  verbs.table.expired(now, limit, (row) => {
    rows.push(row);
  });
  return rows.map((row) => verbs.keyOf(row));
}

function parseRowName(name: string): { table: number; key: string } {
  const slash = name.indexOf('/');
  return { table: Number(name.slice(0, slash)), key: name.slice(slash + 1) };
}
