// Filters by tags over the ordinals of one measurement. A filter is turned into sets of values
// first, so that a pattern is tried once on each value and not on each series. The next step
// depends on the number of matching values: with few, their postings are followed and each series
// found is tested; with many, the columns concerned are scanned into bitmaps.

import type { SeriesFilter } from '../../../contracts/series-store.ts';
import type { Slices } from '../../../universal-row/slices.ts';
import type { MeasurementIndex } from './measurement-index.ts';
import type { Tag } from './tag.ts';
import { hasBit, setBit } from './value-column.ts';
import { ValueSet } from './value-set.ts';

type Condition =
  | { readonly kind: 'all' }
  | { readonly kind: 'none' }
  | { readonly kind: 'values'; readonly tag: Tag; readonly values: ValueSet }
  | { readonly kind: 'and' | 'or'; readonly terms: readonly Condition[] };

const all: Condition = { kind: 'all' };
const none: Condition = { kind: 'none' };

// Postings are followed for less than one value in this many, and in measurements that are large enough.
const valuesPerSelective = 16;
const seriesForPostings = 2048;
// One series is tried by itself in the time that so many take in a column.
const seriesPerLook = 8;
/**
 * Most work of pattern matching between two yields: total length of the values, and a fixed cost
 * for each.
 */
const lengthAtOnce = 16 * 1024;
const valueCost = 32;

/** Matching ordinals, ascending, removed series included; undefined when all match. */
export function* matchingOrdinals(
  measurement: MeasurementIndex,
  filter: SeriesFilter,
): Slices<Uint32Array | undefined> {
  const matches = yield* OrdinalFilter.of(measurement, filter);
  return (yield* matches.few()) ?? (yield* matches.among(undefined));
}

/** A filter for callers that may have a more selective condition of their own. */
export class OrdinalFilter {
  readonly #condition: Condition;
  readonly #count: number;

  private constructor(condition: Condition, count: number) {
    this.#condition = condition;
    this.#count = count;
  }

  /** Over the series that there are as it begins. */
  static *of(measurement: MeasurementIndex, filter: SeriesFilter): Slices<OrdinalFilter> {
    const count = measurement.series.length;
    return new OrdinalFilter(yield* conditionOf(measurement, filter), count);
  }

  /** All that match, ascending, where those are found without a look at many; else undefined. */
  *few(): Slices<Uint32Array | undefined> {
    const condition = this.#condition;
    if (condition.kind === 'all') return undefined;
    if (condition.kind === 'none') return new Uint32Array(0);
    const candidates = candidatesOf(condition, this.#count);
    if (candidates === undefined) {
      return this.#count < seriesForPostings
        ? listed(yield* bitsOf(condition, this.#count))
        : undefined;
    }
    return Uint32Array.from(candidates.filter((ordinal) => holds(condition, ordinal)))
      .sort()
      .filter((ordinal, i, sorted) => i === 0 || ordinal !== sorted[i - 1]);
  }

  /** Filters the ordinals (undefined: all); keeps their order. */
  *among(ordinals: Uint32Array | undefined): Slices<Uint32Array | undefined> {
    const condition = this.#condition;
    if (condition.kind === 'all') return ordinals;
    if (ordinals === undefined) return listed(yield* bitsOf(condition, this.#count));
    if (ordinals.length * seriesPerLook < this.#count) {
      return ordinals.filter((ordinal) => holds(condition, ordinal));
    }
    const bits = yield* bitsOf(condition, this.#count);
    return marked(ordinals, bits);
  }
}

function* conditionOf(measurement: MeasurementIndex, filter: SeriesFilter): Slices<Condition> {
  if ('terms' in filter) {
    const terms: Condition[] = [];
    for (const term of filter.terms) terms.push(yield* conditionOf(measurement, term));
    return combined(filter.kind, terms);
  }
  const tag = measurement.tag(filter.tag);
  const values = yield* valuesOf(tag, filter);
  if (tag === undefined) return values.has(0) ? all : none;
  return simplified(tag, values);
}

function* valuesOf(
  tag: Tag | undefined,
  filter: Exclude<SeriesFilter, { terms: unknown }>,
): Slices<ValueSet> {
  if ('value' in filter) {
    const number = filter.value === '' ? 0 : (tag?.values.findText(filter.value) ?? -1);
    const isKnown = filter.value === '' || number > 0;
    return new ValueSet(Uint32Array.from(isKnown ? [number] : []), filter.kind === 'notEqual');
  }
  const matching: number[] = filter.matches('') ? [0] : [];
  const count = tag === undefined ? 0 : tag.values.count;
  let length = 0;
  for (let v = 1; v <= count; v++) {
    const text = tag!.values.text(v);
    if (filter.matches(text)) matching.push(v);
    length += text.length + valueCost;
    if (length < lengthAtOnce) continue;
    length = 0;
    yield;
  }
  return new ValueSet(Uint32Array.from(matching), filter.kind === 'notMatch');
}

function simplified(tag: Tag, values: ValueSet): Condition {
  if (values.numbers.length === 0) return values.complement ? all : none;
  return { kind: 'values', tag, values };
}

/** Terms about the same tag become one. */
function combined(kind: 'and' | 'or', terms: readonly Condition[]): Condition {
  const decisive = kind === 'and' ? none : all;
  const neutral = kind === 'and' ? all : none;
  const byTag = new Map<Tag, ValueSet>();
  const rest: Condition[] = [];
  for (const term of terms) {
    if (term.kind === decisive.kind) return decisive;
    if (term.kind === 'and' || term.kind === 'or') rest.push(term);
    if (term.kind !== 'values') continue;
    const known = byTag.get(term.tag);
    const values =
      known === undefined
        ? term.values
        : kind === 'and'
          ? known.intersection(term.values)
          : known.union(term.values);
    byTag.set(term.tag, values);
  }
  for (const [tag, values] of byTag) {
    const condition = simplified(tag, values);
    if (condition.kind === decisive.kind) return decisive;
    if (condition.kind !== neutral.kind) rest.push(condition);
  }
  if (rest.length === 0) return neutral;
  return rest.length === 1 ? rest[0]! : { kind, terms: rest };
}

/** Ordinals among which all that match are, some perhaps twice; undefined when they would be many. */
function candidatesOf(condition: Condition, count: number): number[] | undefined {
  if (condition.kind === 'values') {
    const { tag, values } = condition;
    if (!isSelective(tag, values, count)) return undefined;
    const found: number[] = [];
    if (tag.column.isSparse) tag.column.collectSparse(values, found);
    else {
      const postings = tag.postings(count);
      for (const value of values.numbers) postings.collect(value, found);
    }
    return found;
  }
  if (condition.kind === 'and') {
    const term = mostSelective(condition.terms, count);
    return term === undefined ? undefined : candidatesOf(term, count);
  }
  if (condition.kind !== 'or') return undefined;
  if (!condition.terms.every((term) => selectivity(term, count) < 1)) return undefined;
  const found: number[] = [];
  for (const term of condition.terms) {
    for (const ordinal of candidatesOf(term, count)!) found.push(ordinal);
  }
  return found;
}

function isSelective(tag: Tag, values: ValueSet, count: number): boolean {
  if (values.complement || values.numbers[0] === 0) return false;
  if (tag.column.isSparse) return true;
  return (
    count >= seriesForPostings && values.numbers.length * valuesPerSelective <= tag.values.count
  );
}

/** A guess at the fraction of series that match; 1 where postings are of no use. */
function selectivity(condition: Condition, count: number): number {
  if (condition.kind === 'values') {
    const { tag, values } = condition;
    return isSelective(tag, values, count) ? values.numbers.length / (tag.values.count + 1) : 1;
  }
  if (condition.kind === 'and') {
    return Math.min(...condition.terms.map((term) => selectivity(term, count)));
  }
  if (condition.kind !== 'or') return 1;
  const fractions = condition.terms.map((term) => selectivity(term, count));
  if (fractions.includes(1)) return 1;
  const sum = fractions.reduce((a, b) => a + b, 0);
  return Math.min(sum, 0.999);
}

function mostSelective(terms: readonly Condition[], count: number): Condition | undefined {
  let best: Condition | undefined;
  let least = 1;
  for (const term of terms) {
    const fraction = selectivity(term, count);
    if (fraction >= least) continue;
    best = term;
    least = fraction;
  }
  return best;
}

function holds(condition: Condition, ordinal: number): boolean {
  switch (condition.kind) {
    case 'all':
      return true;
    case 'none':
      return false;
    case 'values':
      return condition.values.has(condition.tag.column.get(ordinal));
    case 'and':
      return condition.terms.every((term) => holds(term, ordinal));
    case 'or':
      return condition.terms.some((term) => holds(term, ordinal));
  }
}

/** A bit for each ordinal, and none behind the last. */
function* bitsOf(condition: Condition, count: number): Slices<Uint32Array> {
  const bits = new Uint32Array((count + 31) >>> 5);
  switch (condition.kind) {
    case 'none':
      break;
    case 'all':
      for (let o = 0; o < count; o++) setBit(bits, o);
      break;
    case 'values': {
      const { tag, values } = condition;
      tag.column.mark(values.table(tag.values.count), bits, count);
      break;
    }
    case 'and':
      bits.fill(0xffffffff);
      for (const term of condition.terms) {
        const others = yield* bitsOf(term, count);
        for (let i = 0; i < bits.length; i++) bits[i]! &= others[i]!;
        yield;
      }
      break;
    case 'or':
      for (const term of condition.terms) {
        const others = yield* bitsOf(term, count);
        for (let i = 0; i < bits.length; i++) bits[i]! |= others[i]!;
        yield;
      }
      break;
  }
  return bits;
}

/** Ordinals whose bit is set. A loop: `filter` takes many times as long. */
function marked(ordinals: Uint32Array, bits: Uint32Array): Uint32Array {
  const kept = new Uint32Array(ordinals.length);
  let count = 0;
  for (let i = 0; i < ordinals.length; i++) {
    if (hasBit(bits, ordinals[i]!)) kept[count++] = ordinals[i]!;
  }
  return kept.slice(0, count);
}

function listed(bits: Uint32Array): Uint32Array {
  let total = 0;
  for (const word of bits) for (let rest = word; rest !== 0; rest &= rest - 1) total++;
  const ordinals = new Uint32Array(total);
  let at = 0;
  for (let i = 0; i < bits.length; i++) {
    for (let rest = bits[i]!; rest !== 0; rest &= rest - 1) {
      ordinals[at++] = i * 32 + 31 - Math.clz32(rest & -rest);
    }
  }
  return ordinals;
}
