import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Column } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import { CorruptFileError } from '../parts.ts';
import { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import {
  ColumnBuffer,
  decodeColumn,
  decodeTimes,
  encodeColumn,
  encodeTimes,
} from './column-codec.ts';

type Value = number | bigint | string | undefined;

/** A column of these values, undefined where there is none. */
function columnOf(type: FieldType, values: readonly Value[]): Column {
  const wide = values.some((value) => typeof value === 'bigint');
  const big = wide ? values.map((value) => BigInt(value ?? 0)) : [];
  const wideArray = type === 'unsigned' ? BigUint64Array.from(big) : BigInt64Array.from(big);
  return {
    type,
    numbers: Float64Array.from(values, (value) => (typeof value === 'number' ? value : 99)),
    wide: wide ? wideArray : undefined,
    texts: type === 'string' ? values.map((value) => String(value ?? 'none')) : undefined,
    present: values.includes(undefined)
      ? Uint8Array.from(values, (value) => (value === undefined ? 0 : 1))
      : undefined,
  };
}

function valuesOf(column: Column, rows: number): Value[] {
  return Array.from({ length: rows }, (_, i) => {
    if (column.present?.[i] === 0) return undefined;
    return column.texts?.[i] ?? column.wide?.[i] ?? column.numbers[i];
  });
}

function encoded(column: Column, start: number, count: number): Buffer {
  const out = new ByteWriter(16);
  encodeColumn(out, column, start, count);
  return Buffer.from(out.view());
}

// One for all, as what an earlier column left behind must not show.
const buffer = new ColumnBuffer();

function decoded(bytes: Buffer, type: FieldType, rows: number): Value[] {
  const column = decodeColumn(new ByteReader(bytes), type, rows, buffer);
  expect(column.type).toBe(type);
  return valuesOf(column, rows);
}

const asNumbers = (values: readonly Value[]) =>
  values.map((value) =>
    typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value,
  );

/** Returns the bytes it took. */
function roundTrip(type: FieldType, values: readonly Value[]): number {
  const bytes = encoded(columnOf(type, values), 0, values.length);
  // toEqual, as Object.is does, tells -0 from 0.
  expect(asNumbers(decoded(bytes, type, values.length))).toEqual(asNumbers(values));
  return bytes.length;
}

const size = { minLength: 1, maxLength: 150, size: 'max' } as const;
const some = (value: fc.Arbitrary<Value>): fc.Arbitrary<Value[]> =>
  fc
    .oneof(
      fc.array(value, size),
      fc.array(fc.option(value, { nil: undefined }), size),
      fc.array(fc.option(value, { nil: undefined, freq: 1 }), size),
    )
    .filter((values) => values.some((each) => each !== undefined));

const walk = (step: fc.Arbitrary<number>) =>
  fc.tuple(fc.integer(), fc.array(step, size)).map(([start, steps]) => {
    let at = start;
    return steps.map((by) => (at += by));
  });

const decimals = fc
  .tuple(fc.nat({ max: 12 }), fc.array(fc.integer(), size))
  .map(([e, numbers]) => numbers.map((n) => n / 10 ** e));

const anyFloat = fc.oneof(
  fc.double(),
  fc.float(),
  fc.constantFrom(
    0,
    -0,
    NaN,
    Infinity,
    -Infinity,
    5e-324,
    Number.MAX_VALUE,
    -Number.MAX_VALUE,
    0.1,
    71.3,
    2 ** 53,
  ),
);

const safe = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -9, max: 9 }),
  fc.constantFrom(0, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
);

const long = (min: bigint, max: bigint) =>
  fc.oneof(
    fc.bigInt({ min, max }),
    fc.constantFrom(min, max, max - 1n),
    fc.bigInt({ min: max - 500n, max }),
  );

describe('reads back', () => {
  const check = (type: FieldType, values: fc.Arbitrary<Value[]>) => {
    fc.assert(
      fc.property(values, (each) => {
        roundTrip(type, each);
      }),
      { numRuns: 500 },
    );
  };

  test('floats', () => {
    check('float', some(anyFloat));
    check('float', decimals);
    check('float', some(fc.constantFrom(1.5, 2.25, -7)));
    check('float', walk(fc.double({ min: -1, max: 1, noNaN: true })));
    // A value converted from a 32-bit float has no low bits.
    check('float', some(fc.float({ min: 0, max: 100, noNaN: true })));
  });

  test('integers', () => {
    check('integer', some(safe));
    check('integer', walk(fc.integer({ min: -4, max: 4 })));
    check('integer', walk(fc.nat({ max: 5000 })));
    check('integer', walk(fc.nat({ max: 9 }).map((n) => n * 4096)));
    check('unsigned', some(fc.maxSafeNat()));
  });

  test('64-bit integers', () => {
    check('integer', some(long(-(2n ** 63n), 2n ** 63n - 1n)));
    check('unsigned', some(long(0n, 2n ** 64n - 1n)));
    check('integer', some(fc.bigInt({ min: 2n ** 62n, max: 2n ** 62n + 40n })));
    // No longer wide, once the one that was is gone.
    check('integer', some(fc.bigInt({ min: -40n, max: 40n })));
  });

  test('booleans', () => {
    check('boolean', some(fc.constantFrom(0, 1)));
    check('boolean', some(fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 1)));
  });

  test('strings', () => {
    check('string', some(fc.string({ unit: 'grapheme' })));
    check('string', some(fc.constantFrom('', 'up', 'down', 'größer')));
    check(
      'string',
      some(fc.string({ minLength: 100, maxLength: 400, unit: fc.constantFrom('a', 'b') })),
    );
  });
});

test('long columns, of which a part tells how to encode all', () => {
  const rows = 1500;
  const make = (value: (i: number) => number) => Array.from({ length: rows }, (_, i) => value(i));
  const middle = (i: number) => i > 700 && i < 1000;
  const noise = (i: number) => (Math.imul(i, 2654435761) >>> 0) % 100_000;
  roundTrip('integer', make(noise));
  roundTrip(
    'integer',
    make((i) => (middle(i) ? i * 60 : noise(i))),
  );
  roundTrip(
    'integer',
    make((i) => (middle(i) ? noise(i) : i * 1000)),
  );
  roundTrip(
    'integer',
    make((i) => i * 1e9 + noise(i)),
  );
  roundTrip(
    'integer',
    make((i) => (i === 3 ? -Number.MAX_SAFE_INTEGER : i % 5)),
  );
  roundTrip(
    'float',
    make((i) => (middle(i) ? 0.5 : Math.sin(i))),
  );
  roundTrip(
    'float',
    make((i) => (middle(i) ? Math.sin(i) : 0.25)),
  );
  roundTrip(
    'float',
    make((i) => Math.sqrt(i >> 4)),
  );
});

test('floats that mostly stay the same take little room', () => {
  const values = Array.from({ length: 1000 }, (_, i) => Math.sqrt(i >> 6));
  expect(roundTrip('float', values)).toBeLessThan(300);
});

test('one row', () => {
  for (const value of [0, -0, 71.3, 1e300, NaN]) roundTrip('float', [value]);
  for (const value of [0, -1, Number.MAX_SAFE_INTEGER, 2n ** 63n - 1n, -(2n ** 63n)]) {
    roundTrip('integer', [value]);
  }
  roundTrip('string', ['']);
  roundTrip('boolean', [1]);
});

test('a part of a column', () => {
  const check = (type: FieldType, values: Value[]) => {
    const bytes = encoded(columnOf(type, values), 2, 3);
    expect(decoded(bytes, type, 3)).toEqual(values.slice(2, 5));
  };
  check('float', [1, 2, 3.5, 4, 5, 6]);
  check('float', [1, 2, 3.5, undefined, 5, 6]);
  // Absent values lie outside the range.
  check('integer', [undefined, 2, 3, 4, 5, 6]);
  check('integer', [1n, 2n, 2n ** 60n, undefined, 5n, 6n]);
  check('string', ['a', 'b', 'c', undefined, 'e', 'f']);
  check('boolean', [1, 1, 0, undefined, 1, 0]);
});

test('what takes little room', () => {
  const rows = 1000;
  const make = (value: (i: number) => Value) => Array.from({ length: rows }, (_, i) => value(i));
  const check = (type: FieldType, value: (i: number) => Value, most: number) =>
    expect(roundTrip(type, make(value))).toBeLessThanOrEqual(most);
  check('float', () => 71.3, 9);
  check('float', (i) => 20 + (i % 16) / 10, 520);
  check('integer', () => -5, 4);
  check('integer', (i) => 1000 * i, 8);
  check('boolean', () => 1, 3);
  check('boolean', (i) => (i * i) % 2, 127);
  check('string', () => 'running', 10);
  check('string', (i) => (i % 3 === 0 ? 'running' : 'stopped'), 160);
  check('string', (i) => `GET /api/v1/things/${i}`, 6000);
  // One row in a thousand lacks a value.
  check('integer', (i) => (i === 700 ? undefined : 3), 16);
});

describe('times', () => {
  function bytesOf(times: readonly number[]): number {
    const out = new ByteWriter();
    encodeTimes(out, Float64Array.from(times), 0, times.length);
    const to = new Float64Array(times.length);
    decodeTimes(new ByteReader(out.view()), times.length, to);
    expect([...to]).toEqual(times);
    return out.length;
  }

  test('regular ones take some bytes in all', () => {
    const second = 1e9;
    expect(
      bytesOf(Array.from({ length: 1000 }, (_, i) => 86_400 * second + i * 10 * second)),
    ).toBeLessThanOrEqual(20);
    expect(bytesOf([5, 6])).toBeLessThanOrEqual(6);
  });

  test('a gap takes some bytes more', () => {
    const times = Array.from({ length: 1000 }, (_, i) => (i < 500 ? i : i + 77) * 1e10);
    expect(bytesOf(times)).toBeLessThanOrEqual(20);
  });

  test('jitter takes its own bits', () => {
    const times = Array.from({ length: 1000 }, (_, i) => i * 1e10 + ((i * 7919) % 1000) * 1000);
    expect(bytesOf(times)).toBeLessThanOrEqual(1000 * 1.6);
  });

  test('any, ascending or not', () => {
    const span = fc.oneof(fc.nat(), fc.constantFrom(1, 1e9, 1e10), fc.nat({ max: 2 ** 45 }));
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 50 }), fc.array(span, { maxLength: 100 }), (start, spans) => {
        let at = start;
        bytesOf([start, ...spans.map((by) => (at += by))]);
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.maxSafeInteger(), { maxLength: 100 }), (times) => {
        bytesOf(times);
      }),
    );
    bytesOf([]);
  });
});

describe('damaged bytes', () => {
  const types: FieldType[] = ['float', 'integer', 'unsigned', 'string', 'boolean'];

  /** Either rows, whatever they say, or the one error. */
  function survives(bytes: Buffer, type: FieldType, rows: number): void {
    try {
      decodeColumn(new ByteReader(bytes), type, rows, buffer);
    } catch (error) {
      expect(error).toBeInstanceOf(CorruptFileError);
    }
  }

  test('made up', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...types),
        fc.integer({ min: 1, max: 2000 }),
        fc.uint8Array({ maxLength: 80 }),
        fc.constantFrom(0, 1, 2, 3, 5, 8, 9, 16, 17, 18, 19, 32, 33, 34, 40, 128, 146),
        (type, rows, bytes, code) => survives(Buffer.from([code, ...bytes]), type, rows),
      ),
      { numRuns: 5000 },
    );
  });

  test('changed and cut', () => {
    const values: [FieldType, Value[]][] = [
      ['float', Array.from({ length: 200 }, (_, i) => Math.sin(i))],
      ['float', Array.from({ length: 200 }, (_, i) => (i % 3 === 0 ? -0 : i * 1e-5))],
      ['float', Array.from({ length: 200 }, (_, i) => Math.round(i * 1.7) / 10)],
      ['integer', Array.from({ length: 200 }, (_, i) => (i % 9 === 0 ? undefined : i ** 3))],
      ['integer', Array.from({ length: 200 }, (_, i) => 2n ** 60n + BigInt(i * i))],
      ['string', Array.from({ length: 200 }, (_, i) => `text ${i % 20}`)],
      ['string', Array.from({ length: 200 }, (_, i) => `text ${i}`)],
      ['boolean', Array.from({ length: 200 }, (_, i) => (i * i) % 2)],
    ];
    for (const [type, each] of values) {
      const bytes = encoded(columnOf(type, each), 0, each.length);
      for (let at = 0; at < bytes.length; at++) {
        const changed = Buffer.from(bytes);
        changed[at]! ^= 1 << (at % 8);
        survives(changed, type, each.length);
        const cut = bytes.subarray(0, at);
        expect(() => decodeColumn(new ByteReader(cut), type, each.length, buffer)).toThrow(
          CorruptFileError,
        );
      }
    }
  });
});
