// One field of a table of the head, by row, in pages. A page is as narrow as its values permit and
// as long as its rows need; where few of its rows have the field, it is a list of those. So a
// field's memory depends on its number of values, whatever rows they are in.

import { Form, type Values, valuesOf } from './packed-column.ts';
import { type PagePool, pageRows, pageShift } from './page-pool.ts';

const offsetMask = pageRows - 1;
const firstPageRows = 64;
/** A page with a value in fewer than one of so many rows is a list. */
const sparseRatio = 8;

interface Page {
  form: Form;
  values: Values;
  /** In a list: which rows of the page have a value, ascending. */
  offsets: Uint16Array | undefined;
  /**
   * In a dense page: 1 for each row with a value; undefined while all rows before `filled` have one. Rows from
   * `filled` on have no value.
   */
  present: Uint8Array | undefined;
  /** Rows, or in a list values, that there are. */
  filled: number;
}

export class ColumnPages {
  bytes = 0;
  readonly #pool: PagePool;
  readonly #pages: (Page | undefined)[] = [];

  constructor(pool: PagePool) {
    this.#pool = pool;
  }

  /** Values of the rows from `row` on, none of which is before a row appended earlier. */
  append(row: number, form: Form, values: Values, count: number): void {
    let done = 0;
    while (done < count) {
      const at = row + done;
      const offset = at & offsetMask;
      const n = Math.min(count - done, pageRows - offset);
      const page = this.#pageFor(at >>> pageShift, offset + n, n, form);
      if (page.offsets === undefined) this.#accountUpTo(page, offset);
      if (page.offsets === undefined) page.present?.fill(1, offset, offset + n);
      else for (let i = 0; i < n; i++) page.offsets[page.filled + i] = offset + i;
      const to = page.offsets === undefined ? offset : page.filled;
      copyValues(page, to, form, values, done, n);
      page.filled = to + n;
      done += n;
    }
  }

  /** As `append`, of the rows `row + rows[k]`, ascending. */
  appendSome(row: number, rows: Uint32Array, form: Form, values: Values, count: number): void {
    let done = 0;
    while (done < count) {
      const number = (row + rows[done]!) >>> pageShift;
      let end = done + 1;
      while (end < count && (row + rows[end]!) >>> pageShift === number) end++;
      const last = (row + rows[end - 1]!) & offsetMask;
      const page = this.#pageFor(number, last + 1, end - done, form);
      if (page.offsets === undefined) this.#scatter(page, row, rows, form, values, done, end);
      else {
        for (let k = done; k < end; k++) {
          page.offsets[page.filled + k - done] = (row + rows[k]!) & offsetMask;
        }
        copyValues(page, page.filled, form, values, done, end - done);
        page.filled += end - done;
      }
      done = end;
    }
  }

  /**
   * The values of the rows, and 1 in `has` where there is one. Returns how many there are; -1 when there
   * is an integer among them that may not fit a double.
   */
  gather(rows: Uint32Array, count: number, into: Float64Array, has: Uint8Array): number {
    let found = 0;
    for (let i = 0; i < count; ) {
      const number = rows[i]! >>> pageShift;
      let end = i + 1;
      while (end < count && rows[end]! >>> pageShift === number) end++;
      const page = this.#pages[number];
      if (page === undefined) for (let k = i; k < end; k++) has[k] = 0;
      else if (page.form === Form.i64) return -1;
      else if (page.offsets !== undefined) found += gatherListed(page, rows, i, end, into, has);
      else {
        found += gatherPresence(page, rows, i, end, has);
        gatherValues(page, rows, i, end, into);
      }
      i = end;
    }
    return found;
  }

  /** As `gather`, of integers of any size. */
  gatherWide(rows: Uint32Array, count: number, into: BigInt64Array, has: Uint8Array): number {
    let found = 0;
    for (let i = 0; i < count; i++) {
      const page = this.#pages[rows[i]! >>> pageShift];
      const index = page === undefined ? -1 : indexOf(page, rows[i]! & offsetMask);
      has[i] = index < 0 ? 0 : 1;
      if (index < 0) continue;
      found++;
      into[i] = BigInt(page!.values[index]!);
    }
    return found;
  }

  /** Gives the pages back. */
  release(): void {
    for (const page of this.#pages) if (page !== undefined) this.#pool.give(page.form, page.values);
    this.#pages.length = 0;
    this.bytes = 0;
  }

  /** The page, made fit to take `count` more values of the form in rows before `end`. */
  #pageFor(number: number, end: number, count: number, form: Form): Page {
    let page = this.#pages[number];
    if (page === undefined) {
      page = this.#newPage(end, count, form);
      while (this.#pages.length <= number) this.#pages.push(undefined);
      this.#pages[number] = page;
      return page;
    }
    if (page.offsets !== undefined && (page.filled + count) * sparseRatio >= end) {
      this.#makeDense(page, end);
    }
    this.#resize(
      page,
      Math.max(page.form, form) as Form,
      page.offsets === undefined ? end : page.filled + count,
    );
    return page;
  }

  #newPage(end: number, count: number, form: Form): Page {
    const sparse = count * sparseRatio < end;
    const length = lengthFor(sparse ? count : end, sparse);
    const page: Page = {
      form,
      values: length === pageRows ? this.#pool.take(form) : valuesOf(form, length),
      offsets: sparse ? new Uint16Array(length) : undefined,
      present: undefined,
      filled: 0,
    };
    this.bytes += bytesOf(page);
    return page;
  }

  /** Gives the page at least the length and the form. */
  #resize(page: Page, form: Form, needed: number): void {
    const { values } = page;
    if (page.form === form && needed <= values.length) return;
    this.bytes -= bytesOf(page);
    const length =
      needed <= values.length ? values.length : lengthFor(needed, page.offsets !== undefined);
    const larger: Page = {
      ...page,
      form,
      values: length === pageRows ? this.#pool.take(form) : valuesOf(form, length),
    };
    copyValues(larger, 0, page.form, values, 0, page.filled);
    this.#pool.give(page.form, values);
    page.form = form;
    page.values = larger.values;
    if (page.offsets !== undefined) page.offsets = lengthened(page.offsets, Uint16Array, length);
    if (page.present !== undefined) page.present = lengthened(page.present, Uint8Array, length);
    this.bytes += bytesOf(page);
  }

  #makeDense(page: Page, end: number): void {
    const { offsets, values, filled, form } = page;
    this.bytes -= bytesOf(page);
    const length = lengthFor(end, false);
    page.values = length === pageRows ? this.#pool.take(form) : valuesOf(form, length);
    page.present = new Uint8Array(length);
    page.offsets = undefined;
    for (let i = 0; i < filled; i++) {
      page.values[offsets![i]!] = values[i]!;
      page.present[offsets![i]!] = 1;
    }
    page.filled = filled === 0 ? 0 : offsets![filled - 1]! + 1;
    this.bytes += bytesOf(page);
  }

  /** Rows between the last one and `offset` have no value. */
  #accountUpTo(page: Page, offset: number): void {
    if (page.filled >= offset) return;
    this.#needPresence(page);
    page.present!.fill(0, page.filled, offset);
    page.filled = offset;
  }

  #needPresence(page: Page): void {
    if (page.present !== undefined) return;
    page.present = new Uint8Array(page.values.length).fill(1, 0, page.filled);
    this.bytes += page.present.length;
  }

  #scatter(
    page: Page,
    row: number,
    rows: Uint32Array,
    form: Form,
    values: Values,
    from: number,
    to: number,
  ): void {
    const first = (row + rows[from]!) & offsetMask;
    const last = (row + rows[to - 1]!) & offsetMask;
    this.#accountUpTo(page, first);
    if (last - first === to - from - 1) page.present?.fill(1, first, last + 1);
    else {
      this.#needPresence(page);
      page.present!.fill(0, first, last + 1);
      for (let k = from; k < to; k++) page.present![(row + rows[k]!) & offsetMask] = 1;
    }
    const target = page.values;
    if (page.form === Form.i64 && form !== Form.i64) {
      for (let k = from; k < to; k++) {
        target[(row + rows[k]!) & offsetMask] = BigInt(values[k]!);
      }
    } else {
      for (let k = from; k < to; k++) target[(row + rows[k]!) & offsetMask] = values[k]!;
    }
    page.filled = last + 1;
  }
}

function bytesOf(page: Page): number {
  return (
    page.values.byteLength + (page.offsets?.byteLength ?? 0) + (page.present?.byteLength ?? 0) + 96
  );
}

/** A power of two, at most the length of a full page. */
function lengthFor(needed: number, sparse: boolean): number {
  let length = sparse ? 2 : firstPageRows;
  while (length < needed) length *= 2;
  return length;
}

function lengthened<T extends Uint8Array | Uint16Array>(
  array: T,
  kind: new (length: number) => T,
  length: number,
): T {
  if (array.length >= length) return array;
  const longer = new kind(length);
  longer.set(array);
  return longer;
}

function copyValues(
  page: Page,
  to: number,
  form: Form,
  values: Values,
  from: number,
  count: number,
): void {
  if (count === 0) return;
  if (page.form === Form.i64 && form !== Form.i64) {
    const target = page.values as BigInt64Array;
    for (let i = 0; i < count; i++) target[to + i] = BigInt(values[from + i]!);
    return;
  }
  const source =
    from === 0 && count === values.length ? values : values.subarray(from, from + count);
  // Both hold numbers or both are wide: the two are of one kind to the compiler.
  (page.values as Float64Array).set(source as Float64Array, to);
}

/** Where the page has the row's value; -1 when it has none. */
function indexOf(page: Page, offset: number): number {
  if (page.offsets === undefined) {
    if (offset >= page.filled) return -1;
    return page.present === undefined || page.present[offset] === 1 ? offset : -1;
  }
  let low = 0;
  let high = page.filled - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const there = page.offsets[middle]!;
    if (there === offset) return middle;
    if (there < offset) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

function gatherListed(
  page: Page,
  rows: Uint32Array,
  from: number,
  to: number,
  into: Float64Array,
  has: Uint8Array,
): number {
  let found = 0;
  for (let i = from; i < to; i++) {
    const index = indexOf(page, rows[i]! & offsetMask);
    has[i] = index < 0 ? 0 : 1;
    if (index < 0) continue;
    found++;
    into[i] = page.values[index] as number;
  }
  return found;
}

function gatherPresence(
  page: Page,
  rows: Uint32Array,
  from: number,
  to: number,
  has: Uint8Array,
): number {
  const { present, filled } = page;
  let found = 0;
  for (let i = from; i < to; i++) {
    const offset = rows[i]! & offsetMask;
    const there = offset >= filled ? 0 : present === undefined ? 1 : present[offset]!;
    has[i] = there;
    found += there;
  }
  return found;
}

/** One loop for each kind of array, so that each stays as fast as it is for that kind alone. */
function gatherValues(
  page: Page,
  rows: Uint32Array,
  from: number,
  to: number,
  into: Float64Array,
): void {
  switch (page.form) {
    case Form.i8: {
      const values = page.values as Int8Array;
      for (let i = from; i < to; i++) into[i] = values[rows[i]! & offsetMask]!;
      return;
    }
    case Form.i16: {
      const values = page.values as Int16Array;
      for (let i = from; i < to; i++) into[i] = values[rows[i]! & offsetMask]!;
      return;
    }
    case Form.i32: {
      const values = page.values as Int32Array;
      for (let i = from; i < to; i++) into[i] = values[rows[i]! & offsetMask]!;
      return;
    }
    default: {
      const values = page.values as Float64Array;
      for (let i = from; i < to; i++) into[i] = values[rows[i]! & offsetMask]!;
    }
  }
}
