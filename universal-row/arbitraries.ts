// Random rows for property tests: every kind of value, with the values that encodings trip over.

import fc from 'fast-check';
import { compareScalars } from './key-order.ts';
import { rowKey, type Column, type DocumentValue, type RowAttributes, type URow } from './row.ts';
import type { RowValue } from './row.ts';
import { nameOf } from './row-equality.ts';
import type { Scalar } from './scalar.ts';

/** How many cases a property runs: few normally, `full` with POLYROW_FULL=1. */
export function runs(normally: number, full: number): number {
  return process.env['POLYROW_FULL'] === '1' ? full : normally;
}

export const anyBytes = fc.oneof(
  fc.uint8Array({ maxLength: 24 }),
  fc.uint8Array({ maxLength: 6, max: 2 }),
  fc.string({ maxLength: 12 }).map((text) => Buffer.from(text)),
  fc.uint8Array({ minLength: 240, maxLength: 300 }),
);

export const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ unit: fc.constantFrom('\0', '\x01', '\x02', 'a', '\u{ffff}', '\u{10000}') }),
  fc.constantFrom('', '__proto__', '$ref', '$id', '_bsontype', 'toString', '0', 'constructor'),
);

const powers = fc.tuple(fc.nat({ max: 63 }), fc.integer({ min: -3, max: 3 }), fc.boolean());

/** Near the powers of two, where number and bigint lie closest. */
const nearPowers = powers.map(([bits, off, negative]) =>
  BigInt.asIntN(64, (negative ? -1n : 1n) * 2n ** BigInt(bits) + BigInt(off)),
);

const anyBigint = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  nearPowers,
  fc.constantFrom(0n, 1n, -1n, -(2n ** 63n), 2n ** 63n - 1n),
);

const anyNumber = fc.oneof(
  fc.double(),
  fc.integer(),
  nearPowers.map(Number),
  fc.constantFrom(0, -0, NaN, Infinity, -Infinity, 5e-324, 2 ** 53, 2 ** 31, -(2 ** 31), 1.5),
);

export const anyScalar: fc.Arbitrary<Scalar> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  anyNumber,
  anyBigint,
  anyText,
  anyBytes,
);

export const anyGroup = fc.array(anyScalar, { maxLength: 4 });

const distinct = (item: fc.Arbitrary<Scalar>, maxLength: number) =>
  fc.uniqueArray(item, { maxLength, selector: nameOf });

const score = anyNumber.filter((value) => !Number.isNaN(value));

/** The containers and the primitive, made of `item`. */
export function flatValues(item: fc.Arbitrary<Scalar>, scores = score, maxLength = 12) {
  return {
    primitive: item.map((value) => ({ kind: 'primitive', value }) as const),
    map: distinct(item, maxLength)
      .chain((fields) => fc.tuple(...fields.map((field) => fc.tuple(fc.constant(field), item))))
      .map((entries) => ({ kind: 'map', entries }) as const),
    set: distinct(item, maxLength).map((members) => ({ kind: 'set', members }) as const),
    ranked: distinct(item, maxLength)
      .chain((all) => fc.tuple(...all.map((member) => fc.tuple(fc.constant(member), scores))))
      .map((members) => ({ kind: 'ranked', members }) as const),
    array: fc.array(item, { maxLength }).map((elements) => ({ kind: 'array', elements }) as const),
    stream: fc
      .tuple(item, distinct(item, maxLength))
      .chain(([state, keys]) =>
        fc.tuple(
          fc.constant(state),
          fc.tuple(...keys.toSorted(compareScalars).map((key) => fc.tuple(fc.constant(key), item))),
        ),
      )
      .map(([state, records]) => ({ kind: 'stream', state, records }) as const),
  };
}

const anyColumn: fc.Arbitrary<Column> = fc.oneof(
  fc.array(anyNumber).map((v) => ({ type: 'float', values: Float64Array.from(v) }) as const),
  fc.array(anyBigint).map((v) => ({ type: 'integer', values: BigInt64Array.from(v) }) as const),
  fc.array(fc.boolean()).map((values) => ({ type: 'boolean', values }) as const),
  fc.array(anyText).map((values) => ({ type: 'text', values }) as const),
  fc.array(anyScalar).map((values) => ({ type: 'any', values }) as const),
);

const anyColumns = fc
  .array(fc.tuple(anyText, anyColumn), { maxLength: 5 })
  .map((columns) => ({ kind: 'columns', columns: new Map(columns) }) as const);

const { tree } = fc.letrec<{ tree: DocumentValue }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    anyScalar,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.array(fc.tuple(anyText, tie('tree')), { maxLength: 4 }).map((fields) => new Map(fields)),
  ),
}));

const anyDocument = tree.map((root) => ({ kind: 'document', root }) as const);

const time = fc.nat({ max: 2 ** 45 });

export const anyAttributes: fc.Arbitrary<RowAttributes> = fc
  .tuple(fc.maxSafeNat(), time, fc.option(time, { nil: undefined }))
  .map(([version, ts, expireAt]) =>
    expireAt === undefined ? { version, ts } : { version, ts, expireAt },
  );

const anyKey = fc.tuple(anyGroup, anyGroup).map(([partition, range]) => rowKey(partition, range));

export function rowsOf(value: fc.Arbitrary<RowValue>): fc.Arbitrary<URow> {
  return fc.record({ key: anyKey, value, attrs: anyAttributes });
}

export const anyRow = rowsOf(
  fc.oneof(...Object.values(flatValues(anyScalar)), anyColumns, anyDocument),
);
