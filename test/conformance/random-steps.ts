// Random steps over few keys: each is a list of operations whose right answers the oracle has given, so
// that a step can be run on an engine as often as its read faults ask for.

import assert from 'node:assert/strict';
import type { Engine } from '../../engines/engine.ts';
import { unlimited, Verbs, type Walk } from '../../engines/conformance/verbs.ts';
import { due } from '../../engines/conformance/trial.ts';
import { Shape, type LexRange, type Row, type ScoreRange } from '../../universal-row/rows.ts';
import {
  contentOf,
  countOf,
  dropIfEmpty,
  inLex,
  inScores,
  newRow,
  patch,
  putField,
  putScore,
  removeField,
  type Oracle,
  type OracleRow,
  type OracleTable,
  type Scored,
} from './oracle.ts';

interface Operation {
  /** Description of the step, for failure messages. */
  text: string;
  run: (engine: Engine) => unknown;
  /** Expected result of `run`. */
  answer: unknown;
}

export const tableCount = 3;
const keys = ['', 'a', 'b', 'key', 'another key', '\0\xff\x80', 'k'.repeat(40), 'k'.repeat(300)];
const times = [0, 0, 1000, 2000, 3000, 2 ** 41];
const scores = [0, -0, 1, 1, 2, 3.5, -1, 1e300, Infinity, -Infinity, 0.1];
// Beyond this a container is cut down, so that steps stay quick.
const largeCount = 700;

/** Uniform in [0, 1), the same for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const shapeNames = ['none', 'value', 'map', 'set', 'ranked', 'array', 'stream'];
const brief = (text: string): string =>
  text.length <= 24 ? JSON.stringify(text) : `${JSON.stringify(text.slice(0, 12))}(${text.length})`;

type On = (text: string, answer: unknown, run: (v: Verbs) => unknown) => Operation;

/** Makes operations and their answers, and keeps the oracle at the state after them. */
export class StepMaker {
  oracle: Oracle;
  readonly #random: () => number;

  constructor(oracle: Oracle, random: () => number) {
    this.oracle = oracle;
    this.#random = random;
  }

  /** Operations of one command. */
  step(): Operation[] {
    const count = this.#chance(0.7) ? 1 : 1 + this.#below(6);
    return Array.from({ length: count }, () => this.#operation());
  }

  #below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  #chance(p: number): boolean {
    return this.#random() < p;
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)]!;
  }

  #bytes(): string {
    const kind = this.#random();
    if (kind < 0.1) return '';
    if (kind < 0.5) return `${this.#below(1000) - 500}`;
    const length = kind < 0.9 ? this.#below(70) : kind < 0.995 ? this.#below(600) : 20_000;
    return String.fromCharCode(this.#below(256), this.#below(256)).repeat(length / 2);
  }

  /** A field or member, often one that is there. */
  #name(row: OracleRow): string {
    const names = row.shape === Shape.ranked ? row.scores : row.fields;
    if (names.length > 0 && this.#chance(0.5)) return this.#pick<[string, unknown]>(names)[0];
    return this.#chance(0.1) ? this.#bytes() : `f${this.#below(300)}`;
  }

  #operation(): Operation {
    const number = this.#chance(0.8) ? 0 : this.#below(tableCount);
    const table = this.oracle.tables[number]!;
    const key = this.#pick(keys);
    const row = table.get(key);
    const on: On = (text, answer, run) => ({
      text: `table ${number} ${brief(key)}: ${text}`,
      run: (engine) => run(new Verbs(engine.table(number))),
      answer,
    });
    const kind = this.#random();
    if (kind < 0.004) return this.#wholeTable(number);
    if (kind < 0.03) return this.#readTable(table, on);
    if (row === undefined) return this.#make(table, key, on);
    if (kind < 0.13) return this.#wholeRow(table, key, row, on);
    if (kind < 0.25) return this.#readRow(key, row, on);
    if (countOf(row) > largeCount && row.shape !== Shape.value) return this.#drop(table, key, on);
    switch (row.shape) {
      case Shape.value:
        return this.#ofValue(key, row, on);
      case Shape.ranked:
        return this.#ofRanked(table, key, row, on);
      case Shape.array:
        return this.#ofArray(table, key, row, on);
      case Shape.stream:
        return this.#ofStream(key, row, on);
      default:
        return this.#ofFields(table, key, row, on);
    }
  }

  // ---- tables and whole rows

  #wholeTable(number: number): Operation {
    const { tables } = this.oracle;
    if (this.#chance(0.6)) {
      const other = this.#below(tableCount);
      [tables[number], tables[other]] = [tables[other]!, tables[number]!];
      return {
        text: `swap of tables ${number} and ${other}`,
        run: (engine) => engine.swapTables(number, other),
        answer: undefined,
      };
    }
    tables[number] = new Map();
    return {
      text: `clear of table ${number}`,
      run: (engine) => engine.table(number).clear(),
      answer: undefined,
    };
  }

  #readTable(table: OracleTable, on: On): Operation {
    const names = [...table.keys()].sort();
    if (this.#chance(0.5)) {
      const now = this.#pick(times);
      const isDue = ({ expireAt }: OracleRow) => expireAt !== 0 && expireAt <= now;
      const expected = names.filter((name) => isDue(table.get(name)!));
      const expiring = names.filter((name) => table.get(name)!.expireAt !== 0).length;
      return on(`due at ${now}`, [names.length, expiring, expected], (v) => [
        v.table.rowCount(),
        v.table.expiringRows,
        due(v, now, 100).sort(),
      ]);
    }
    const budget = 1 + this.#below(5);
    const random = this.#random();
    return on(`scan by ${budget}, any at ${random}`, [names, names.length > 0], (v) => {
      const seen = new Set<string>();
      let cursor = 0;
      do cursor = v.table.scan(cursor, budget, (row) => void seen.add(v.keyOf(row)));
      while (cursor !== 0);
      const any: Row = v.table.anyRow(random);
      return [[...seen].sort(), any !== 0 && seen.has(v.keyOf(any))];
    });
  }

  /** A new row in place of whatever is there. */
  #make(table: OracleTable, key: string, on: On): Operation {
    const row = newRow(this.#pick([1, 2, 3, 4, 5, 6] as const));
    row.expireAt = this.#pick(times);
    const size = this.#chance(0.8) ? 1 + this.#below(5) : 1 + this.#below(200);
    if (row.shape === Shape.value) row.bytes = this.#bytes();
    else for (let i = 0; i < size; i++) this.#add(row);
    table.set(key, row);
    const content = contentOf(row);
    const text = `fill with ${shapeNames[row.shape]} of ${countOf(row)} until ${row.expireAt}`;
    return on(text, countOf(row), (v) => v.table.count(v.fill(key, content)));
  }

  #add(row: OracleRow): void {
    if (row.shape === Shape.ranked) putScore(row, this.#name(row), this.#pick(scores));
    else if (row.shape === Shape.array) row.elements.push(this.#bytes());
    else if (row.shape === Shape.stream) putField(row, `r${this.#name(row)}`, this.#bytes());
    else putField(row, this.#name(row), row.shape === Shape.map ? this.#bytes() : '');
  }

  #drop(table: OracleTable, key: string, on: On): Operation {
    table.delete(key);
    return on('drop', 0, (v) => {
      v.drop(key);
      return v.find(key);
    });
  }

  #wholeRow(table: OracleTable, key: string, row: OracleRow, on: On): Operation {
    const kind = this.#random();
    if (kind < 0.15) return this.#drop(table, key, on);
    if (kind < 0.3) return this.#make(table, key, on);
    if (kind < 0.6) {
      const at = this.#pick(times);
      row.expireAt = at;
      return on(`expire at ${at}`, undefined, (v) => v.expire(key, at));
    }
    const to = this.#pick(keys);
    table.delete(key);
    table.set(to, row);
    return on(`rename to ${brief(to)}`, to, (v) => v.keyOf(v.rename(key, to)));
  }

  #readRow(key: string, row: OracleRow, on: On): Operation {
    const content = contentOf(row);
    return on('content', content, (v) => v.content(key));
  }

  // ---- values

  #ofValue(key: string, row: OracleRow, on: On): Operation {
    if (this.#chance(0.5)) {
      const bytes = (row.bytes = this.#bytes());
      const at = (row.expireAt = this.#pick(times));
      return on(`put ${brief(bytes)}`, bytes, (v) => {
        v.put(key, bytes, at);
        return v.value(key);
      });
    }
    const offset = this.#below(row.bytes.length + 20);
    const bytes = `${this.#bytes()}.`;
    patch(row, offset, bytes);
    if (row.bytes.length > 60_000) row.bytes = '';
    const after = row.bytes;
    const at = row.expireAt;
    return on(`patch at ${offset} by ${brief(bytes)}`, after.length, (v) => {
      v.patch(key, offset, bytes);
      if (after === '') v.put(key, '', at);
      return v.table.count(v.row(key));
    });
  }

  // ---- maps and sets

  #ofFields(table: OracleTable, key: string, row: OracleRow, on: On): Operation {
    const isMap = row.shape === Shape.map;
    const name = this.#name(row);
    const kind = this.#random();
    if (kind < 0.4) {
      const bytes = isMap ? this.#bytes() : '';
      const isNew = putField(row, name, bytes);
      return on(`put ${brief(name)} ${brief(bytes)}`, isNew, (v) =>
        v.putFieldOf(v.row(key), name, bytes),
      );
    }
    if (kind < 0.45) return this.#fillMore(key, row, on);
    if (kind < 0.75) {
      const removed = removeField(table, key, name);
      return on(`remove ${brief(name)}`, [removed, countOf(row)], (v) => {
        const handle = v.row(key);
        return [v.removeFieldOf(handle, name), v.table.count(handle)];
      });
    }
    if (kind < 0.9) {
      const bytes = row.fields.find(([found]) => found === name)?.[1];
      if (!isMap) return on(`has ${brief(name)}`, bytes === '', (v) => v.hasField(key, name));
      return on(`field ${brief(name)}`, bytes, (v) => v.field(key, name));
    }
    const budget = 1 + this.#below(50);
    const names = row.fields.map(([found]) => found).sort();
    return on(`scan of fields by ${budget}`, names, (v) => {
      const seen = new Set<string>();
      let cursor = 0;
      do {
        cursor = v.table.scanFields(v.row(key), cursor, budget, (b, s, n) => {
          seen.add(b.toString('latin1', s, s + n));
        });
      } while (cursor !== 0);
      return [...seen].sort();
    });
  }

  /** Many elements at once, so that a row outgrows its form. */
  #fillMore(key: string, row: OracleRow, on: On): Operation {
    const more = newRow(row.shape);
    for (let i = this.#below(250); i >= 0; i--) this.#add(more);
    for (const [name, bytes] of more.fields) putField(row, name, bytes);
    for (const [member, score] of more.scores) putScore(row, member, score);
    row.elements.push(...more.elements);
    const content = contentOf(more);
    return on(`${countOf(more)} more`, countOf(row), (v) => {
      v.extend(v.row(key), content);
      return v.table.count(v.row(key));
    });
  }

  // ---- ranked rows

  #ofRanked(table: OracleTable, key: string, row: OracleRow, on: On): Operation {
    const name = this.#name(row);
    const kind = this.#random();
    if (kind < 0.3) {
      const score = this.#chance(0.8) ? this.#pick(scores) : this.#random() * 10 - 5;
      const isNew = putScore(row, name, score);
      return on(`score ${score} for ${brief(name)}`, isNew, (v) =>
        v.putScoreOf(v.row(key), name, score),
      );
    }
    if (kind < 0.35) return this.#fillMore(key, row, on);
    if (kind < 0.55) {
      const removed = removeField(table, key, name);
      return on(`remove ${brief(name)}`, [removed, countOf(row)], (v) => {
        const handle = v.row(key);
        return [v.removeFieldOf(handle, name), v.table.count(handle)];
      });
    }
    if (kind < 0.65) {
      const rank = row.scores.findIndex(([found]) => found === name);
      const score = row.scores[rank]?.[1] ?? NaN;
      return on(`rank and score of ${brief(name)}`, [rank, score, rank >= 0], (v) => [
        v.rank(key, name),
        v.score(key, name),
        v.hasField(key, name),
      ]);
    }
    return this.#ofRange(key, row, on);
  }

  #ofRange(key: string, row: OracleRow, on: On): Operation {
    const reverse = this.#chance(0.5);
    const size = row.scores.length;
    const offset = this.#chance(0.6) ? 0 : this.#below(size + 2);
    const limit = this.#chance(0.4) ? unlimited : this.#below(size + 2);
    const walk: Walk = { reverse, offset, limit };
    const some = (found: Scored[]) =>
      (reverse ? found.toReversed() : found).slice(offset, offset + limit).flat();
    const exclusive = { minExclusive: this.#chance(0.5), maxExclusive: this.#chance(0.5) };
    const text = `${JSON.stringify({ ...walk, ...exclusive })}`;
    const kind = this.#random();
    if (kind < 0.35) {
      return on(`by rank ${text}`, some(row.scores), (v) => v.byRank(key, offset, limit, reverse));
    }
    if (kind < 0.8) {
      const range: ScoreRange = { min: this.#pick(scores), max: this.#pick(scores), ...exclusive };
      const found = inScores(row, range);
      return on(
        `by score ${range.min} to ${range.max} ${text}`,
        [found.length, some(found)],
        (v) => [v.table.countByScore(v.row(key), range), v.byScore(key, range, walk)],
      );
    }
    // By lex presumes equal scores.
    const same = row.scores.every(([, score]) => score === row.scores[0]![1]);
    if (!same) return on('rank of nothing', -1, (v) => v.rank(key, 'nothing'));
    const bound = () => (this.#chance(0.2) ? undefined : Buffer.from(this.#name(row), 'latin1'));
    const range: LexRange = { min: bound(), max: bound(), ...exclusive };
    const found = inLex(row, range);
    return on(`by lex ${text}`, [found.length, some(found)], (v) => [
      v.table.countByLex(v.row(key), range),
      v.byLex(key, range, walk),
    ]);
  }

  // ---- arrays

  #ofArray(table: OracleTable, key: string, row: OracleRow, on: On): Operation {
    const { elements } = row;
    const index = this.#below(elements.length);
    const atHead = this.#chance(0.5);
    const kind = this.#random();
    const element = this.#bytes();
    /** Ends a write: what the row then has, or no row. */
    const changed = (text: string, change: (v: Verbs) => void): Operation => {
      dropIfEmpty(table, key);
      const [count, first] = [elements.length, elements[0]];
      return on(text, [count, first], (v) => {
        const handle = v.row(key);
        change(v);
        return [v.table.count(handle), count === 0 ? undefined : v.element(key, 0)];
      });
    };
    if (kind < 0.25) {
      elements.splice(atHead ? 0 : elements.length, 0, element);
      return changed(`push ${brief(element)}${atHead ? ' at the head' : ''}`, (v) =>
        v.push(key, atHead, element),
      );
    }
    if (kind < 0.3) return this.#fillMore(key, row, on);
    if (kind < 0.45) {
      elements.splice(atHead ? 0 : -1, 1);
      return changed(`pop${atHead ? ' at the head' : ''}`, (v) => v.pop(key, atHead));
    }
    if (kind < 0.55) {
      elements[index] = element;
      return changed(`set ${index} to ${brief(element)}`, (v) => v.setElement(key, index, element));
    }
    if (kind < 0.65) {
      const place = this.#below(elements.length + 1);
      elements.splice(place, 0, element);
      return changed(`insert ${brief(element)} at ${place}`, (v) =>
        v.insertElement(key, place, element),
      );
    }
    if (kind < 0.72) {
      const count = 1 + this.#below(elements.length - index);
      elements.splice(index, count);
      return changed(`remove ${count} at ${index}`, (v) => v.removeElements(key, index, count));
    }
    const count = this.#below(elements.length + 2);
    const walked = atHead ? elements.slice(0, index + 1).reverse() : elements.slice(index);
    const seen = [elements[index], walked.slice(0, count)];
    return on(`walk of ${count} from ${index}${atHead ? ' to the head' : ''}`, seen, (v) => [
      v.element(key, index),
      v.elements(key, index, count, atHead),
    ]);
  }

  // ---- streams

  #ofStream(key: string, row: OracleRow, on: On): Operation {
    const there = row.fields.length > 0 && this.#chance(0.6) ? this.#pick(row.fields) : undefined;
    const name = there?.[0] ?? `r${this.#name(row)}`;
    const old = row.fields.find(([found]) => found === name)?.[1];
    const [from, to] = [name, `r${this.#name(row)}`].sort() as [string, string];
    const kind = this.#random();
    const bytes = this.#bytes();
    const changed = (text: string, change: (v: Verbs) => void): Operation => {
      const found = row.fields.find(([known]) => known === name)?.[1];
      const count = row.fields.length;
      return on(`${text} of ${brief(name)}`, [count, found], (v) => {
        change(v);
        return [v.table.count(v.row(key)), v.record(key, name)];
      });
    };
    if (kind < 0.1) {
      row.bytes = bytes;
      return on(`state ${brief(bytes)}`, bytes, (v) => {
        v.setState(key, bytes);
        return v.state(key);
      });
    }
    if (kind < 0.5) {
      putField(row, name, bytes);
      return changed('record', (v) => {
        if (old === undefined) v.addRecord(key, name, bytes);
        else v.setRecord(key, name, bytes);
      });
    }
    if (kind < 0.75) {
      row.fields = row.fields.filter(([found]) => found !== name);
      return changed('removal', (v) => v.removeRecord(key, name));
    }
    const within = row.fields.filter(([found]) => found >= from && found < to);
    if (kind < 0.8) {
      row.fields = row.fields.filter((pair) => !within.includes(pair));
      return on(`cut ${brief(from)} to ${brief(to)}`, within.length, (v) =>
        v.removeRecords(key, from, to),
      );
    }
    const reverse = this.#chance(0.5);
    const limit = 1 + this.#below(20);
    const sorted = within.sort(([a], [b]) => (a < b ? -1 : 1));
    const seen = (reverse ? sorted.reverse() : sorted).slice(0, limit).flat();
    return on(`walk from ${brief(from)} to ${brief(to)}`, seen, (v) =>
      v.records(key, from, to, reverse, limit),
    );
  }
}

/** Runs the operations; the first wrong answer fails. */
export function runOperations(operations: readonly Operation[], engine: Engine): void {
  for (const { text, run, answer } of operations) {
    assert.deepEqual(run(engine), answer, `wrong answer: ${text}`);
  }
}
