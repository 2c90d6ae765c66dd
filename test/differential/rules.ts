// When two answers are the same. Everything is compared byte for byte but what Redis itself leaves open:
//
//   unordered, pairs   the order of sets and hashes, of KEYS, and of SORT BY nosort on a set
//   scan, scan-pairs   the same in the second half of a SCAN that was asked for everything at once
//   time               times to live: the two servers run a command at slightly different moments
//   draw               random picks: the same form, and nothing that was not there to be picked
//   scores             whether a score of a sorted set is 0 or -0, and whether a large one has an
//                      exponent: in Redis that depends on how many members it keeps the score with
//   exec               each answer of a transaction by its own rule
//
// Left out of the runs: OBJECT ENCODING, IDLETIME, FREQ and REFCOUNT, MEMORY and DEBUG of keys that exist
// (they tell of Redis's own structures); DBSIZE (it counts expired keys until they are met); TIME, LASTSAVE and INFO (they tell of the moment and the server);
// partial SCANs (cursors are each server's own; that scans are complete has tests of its own).

import { isError, type RespValue, show } from '../support/resp-value.ts';

export type Rule =
  | 'exact'
  | 'scores'
  | 'unordered'
  | 'pairs'
  | 'scan'
  | 'scan-pairs'
  | 'time'
  | 'draw'
  /** An EXEC, whose commands were queued under these rules. */
  | { exec: readonly Rule[] };

const timeToleranceMs = 5000;

/** `before` are the answers to the command just before: what a draw could pick from. */
export function agree(
  rule: Rule,
  ours: RespValue,
  theirs: RespValue,
  before: { ours: RespValue; theirs: RespValue } | undefined,
): boolean {
  // Its table may be larger here than a string: 512 MB, as Redis's default allows.
  if (theirs.type === '-' && theirs.text.includes('transient memory for LCS exceeds')) return true;
  if (typeof rule === 'object') return transactionsAgree(rule.exec, ours, theirs);
  switch (rule) {
    case 'time':
      return timesAgree(ours, theirs);
    case 'draw':
      if (form(ours) !== form(theirs)) return false;
      return before === undefined || !('items' in before.ours) || comesFrom(ours, before.ours);
    case 'scores':
      return show(withoutForm(ours)) === show(withoutForm(theirs));
    case 'scan-pairs':
      return normal(rule, withoutForm(ours)) === normal(rule, withoutForm(theirs));
    default:
      return normal(rule, ours) === normal(rule, theirs);
  }
}

function normal(rule: Exclude<Rule, object>, value: RespValue): string {
  if (!('items' in value)) return show(value);
  const { type, items } = value;
  switch (rule) {
    case 'unordered':
      return `${type}${items.map(show).sort().join(' ')}`;
    case 'pairs':
      return `${type}${inPairs(items).sort().join(' ')}`;
    case 'scan':
    case 'scan-pairs': {
      const [cursor, found] = items;
      if (items.length !== 2 || found === undefined || !('items' in found)) return show(value);
      const sorted = rule === 'scan' ? found.items.map(show) : inPairs(found.items);
      return `${type}${show(cursor!)} ${found.type}${sorted.sort().join(' ')}`;
    }
    default:
      return show(value);
  }
}

function withoutForm(value: RespValue): RespValue {
  if ('items' in value) return { ...value, items: value.items.map(withoutForm) };
  if (value.type !== '$' && value.type !== ',') return value;
  const isLarge = /^-?(\d{17,}|[\d.]+e\+\d+)$/.test(value.text);
  return isLarge || value.text === '-0'
    ? { ...value, text: String(Number(value.text) + 0) }
    : value;
}

function inPairs(items: readonly RespValue[]): string[] {
  const pairs: string[] = [];
  for (let i = 0; i < items.length; i += 2) {
    const [key, value] = [items[i]!, items[i + 1]];
    pairs.push(`${show(key)}=${value === undefined ? '' : show(value)}`);
  }
  return pairs;
}

function timesAgree(ours: RespValue, theirs: RespValue): boolean {
  if (ours.type !== ':' || theirs.type !== ':') return show(ours) === show(theirs);
  const [a, b] = [Number(ours.text), Number(theirs.text)];
  if (a <= 0 || b <= 0) return a === b;
  return Math.abs(a - b) <= timeToleranceMs;
}

/** An answer with every text blotted out. */
function form(value: RespValue): string {
  if ('items' in value) return `${value.type}[${value.items.map(form).join(' ')}]`;
  return isError(value) ? show(value) : value.type;
}

function comesFrom(drawn: RespValue, candidates: RespValue): boolean {
  const known = new Set<string>();
  const collect = (value: RespValue) => {
    if ('items' in value) value.items.forEach(collect);
    else known.add(show(value));
  };
  collect(candidates);
  const isKnown = (value: RespValue): boolean => {
    if ('items' in value) return value.items.every(isKnown);
    return isError(value) || !('text' in value) || value.type === '_' || known.has(show(value));
  };
  return isKnown(drawn);
}

function transactionsAgree(rules: readonly Rule[], ours: RespValue, theirs: RespValue): boolean {
  const comparable = 'items' in ours && 'items' in theirs && ours.items.length === rules.length;
  if (!comparable || theirs.items.length !== rules.length) return show(ours) === show(theirs);
  return (
    ours.type === theirs.type &&
    rules.every((rule, i) => agree(rule, ours.items[i]!, theirs.items[i]!, undefined))
  );
}
