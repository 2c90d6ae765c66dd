// Estimates the cost of a command without running it. The rows that the command names are looked up, and the work on
// them is estimated from the kind of command. A command on a whole collection has two stages: finding the collection,
// and walking along it. The cost of a script cannot be derived from its text: the script is run, and all its changes
// are undone.

import type { Arguments } from '../../universal-row/arguments.ts';
import { isWrite } from '../../universal-row/command.ts';
import { type Rows, Shape } from '../../universal-row/rows.ts';
import { RowWork } from '../../universal-row/row-work.ts';
import type { DryRun } from '../../universal-row/transforms/redis/scripts/dry-run.ts';
import type { ReadHistory } from '../../request-units/estimate.ts';
import { costLayout, type RowPricer } from '../../request-units/row-pricer.ts';
import { keyWords } from './commands/key-words.ts';
import type { CommandEntry } from './commands/registry.ts';

/** The rows under the keys of a command. */
export interface NamedRows {
  keys: number;
  found: number;
  /** Elements of all, a value counting as one. */
  items: number;
  bytes: number;
}

export function namedRows(rows: Rows, entry: CommandEntry, args: Arguments): NamedRows {
  const named: NamedRows = { keys: 0, found: 0, items: 0, bytes: 0 };
  for (const word of keyWords(entry.spec, args)) {
    named.keys++;
    const row = rows.find(args.buf, args.starts[word]!, args.lens[word]!);
    if (row === 0) continue;
    named.found++;
    const isValue = rows.shape(row) === Shape.value;
    named.items += isValue ? 1 : rows.count(row);
    named.bytes += isValue ? rows.count(row) : rows.footprint(row);
  }
  return named;
}

interface Stage {
  name: 'lookup' | 'read' | 'walk' | 'write';
  items: number;
  bytes: number;
}

interface Explanation {
  stages: readonly (Stage & { cost: Float64Array })[];
  /** Total cost, in the layout `costLayout`. */
  cost: Float64Array;
}

const frameBytes = 6;
const shortAnswer = 8;

export class Explainer {
  readonly #pricer: RowPricer;
  readonly #history: ReadHistory;

  constructor(pricer: RowPricer, history: ReadHistory) {
    this.#pricer = pricer;
    this.#history = history;
  }

  explain(entry: CommandEntry, args: Arguments, rows: NamedRows): Explanation {
    const work = new RowWork();
    work.lookups = rows.keys;
    let sent = shortAnswer;
    const received = bytesOf(args);
    const stages: (Stage & { cost: Float64Array })[] = [];
    const add = (stage: Stage): void => {
      stages.push({ ...stage, cost: this.#price(received, sent, work) });
    };
    add({ name: 'lookup', items: rows.keys, bytes: 0 });
    if (isWrite(entry.action)) {
      const written = writesOf(entry, args, rows, work);
      work.logBytes = written.bytes;
      add({ name: 'write', ...written });
    } else if (rows.found > 0 || rows.keys === 0) {
      const read = readsOf(entry, args, rows);
      if (read.name === 'walk') this.#walks(entry, read.items, work);
      else {
        work.reads = read.items;
        work.readBytes = read.bytes;
      }
      sent += read.bytes + read.items * frameBytes;
      if (read.items > 0) add(read);
    }
    return { stages, cost: stages.at(-1)!.cost };
  }

  /** Cost of a script that was run, with the rows that it needs in memory by now. */
  costOf(args: Arguments, { sent, work }: DryRun): Float64Array {
    const cost = new Float64Array(costLayout.length);
    this.#pricer.price(1, 1, bytesOf(args), sent, work, cost);
    return cost;
  }

  #walks({ spec, fullName }: CommandEntry, items: number, work: RowWork): void {
    if (spec.group === 'list') work.arrayWalked = items;
    else if (spec.group === 'hash' || fullName === 'hscan') work.fieldsWalked = items;
    else if (fullName === 'zscan') work.scoresWalked = items;
    else if (spec.group === 'sorted-set' || spec.group === 'geo') {
      work.seeks = 1;
      work.scoresWalked = items;
    } else work.walked = items;
  }

  /** Mean of the costs with rows in memory and with rows on disk. */
  #price(received: number, sent: number, work: RowWork): Float64Array {
    const hit = new Float64Array(costLayout.length);
    this.#pricer.price(1, 1, received, sent, work, hit);
    if (!this.#pricer.isCached || work.lookups === 0) return hit;
    const miss = new Float64Array(costLayout.length);
    work.misses = 1;
    this.#pricer.price(1, 1, received, sent, work, miss);
    work.misses = 0;
    return hit.map((units, d) => this.#history.between(units, miss[d]!));
  }
}

function bytesOf(args: Arguments): number {
  let bytes = 4;
  for (let i = 0; i < args.count; i++) bytes += args.lens[i]! + frameBytes;
  return bytes;
}

/** Commands that report properties of a row without reading its contents. */
const tellsOfRows =
  /^(strlen|exists|type|ttl|pttl|expiretime|pexpiretime|hlen|llen|scard|zcard|object)/;
/** Commands that read all there is. */
const readsAll =
  /^(hgetall|hkeys|hvals|smembers|sinter|sunion|sdiff|zunion|zinter|zdiff|sort|lcs|bitcount|bitpos)/;
const ranges = /^(lrange|zrange|zrevrange)$/;

function readsOf(entry: CommandEntry, args: Arguments, rows: NamedRows): Stage {
  const name = entry.fullName;
  if (tellsOfRows.test(name)) return { name: 'read', items: 0, bytes: 0 };
  if (isOfValues(entry) || name === 'dump') {
    return { name: 'read', items: rows.found, bytes: rows.bytes };
  }
  const each = rows.items === 0 ? 0 : rows.bytes / rows.items;
  if (readsAll.test(name)) return { name: 'walk', items: rows.items, bytes: rows.bytes };
  if (name.endsWith('scan')) {
    const items = scanCount(args);
    return { name: 'walk', items, bytes: Math.round(items * (each || firstKeyBytes)) };
  }
  if (ranges.test(name)) {
    const items = spanOf(args, rows.items);
    return { name: 'walk', items, bytes: Math.round(items * each) };
  }
  // A word after the key is a member or a field that is asked for.
  const asked = Math.max(1, args.count - 1 - rows.keys);
  const items = Math.min(asked, rows.items);
  return { name: 'read', items, bytes: Math.round(items * each) };
}

/** Whether the command is about rows of bytes. */
function isOfValues({ spec: { group } }: CommandEntry): boolean {
  return group === 'string' || group === 'bitmap' || group === 'hyperloglog';
}

const firstKeyBytes = 32;
const usualScanCount = 10;

function scanCount(args: Arguments): number {
  for (let i = 2; i + 1 < args.count; i++) {
    if (args.is(i, 'COUNT')) return Math.max(1, args.integerOrNaN(i + 1) || usualScanCount);
  }
  return usualScanCount;
}

/** Elements from one index to another, as LRANGE counts them; all of them for invalid indexes. */
function spanOf(args: Arguments, count: number): number {
  const from = args.integerOrNaN(2);
  const to = args.integerOrNaN(3);
  if (Number.isNaN(from) || Number.isNaN(to)) return count;
  const first = Math.max(0, from < 0 ? count + from : from);
  const last = Math.min(count - 1, to < 0 ? count + to : to);
  return Math.max(0, last - first + 1);
}

function writesOf(
  entry: CommandEntry,
  args: Arguments,
  rows: NamedRows,
  work: RowWork,
): { items: number; bytes: number } {
  const words = args.count - 1 - rows.keys;
  let bytes = 0;
  for (let i = 1; i < args.count; i++) bytes += args.lens[i]! + 2;
  const name = entry.fullName;
  if (/del|unlink|rem|pop|expire|persist|trim|move|rename/.test(name)) {
    work.removed = Math.max(1, Math.min(words === 0 ? rows.found : words, Math.max(1, rows.items)));
    return { items: work.removed, bytes };
  }
  let items = Math.max(1, words);
  switch (entry.spec.group) {
    case 'string':
    case 'bitmap':
    case 'hyperloglog':
      items = Math.max(1, rows.keys);
      work.values = items;
      break;
    case 'hash':
      items = Math.max(1, words >> 1);
      work.fields = items;
      break;
    case 'sorted-set':
    case 'geo':
      items = Math.max(1, words >> 1);
      work.scores = items;
      break;
    case 'list':
      work.elements = items;
      break;
    default:
      work.fields = items;
  }
  return { items, bytes };
}
