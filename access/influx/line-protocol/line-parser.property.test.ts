import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareText } from '../../../universal-row/series/series-key.ts';
import { type FieldValue, parseBody, type Point } from './parser-fixture.ts';

// Lines as written by client libraries.

const name = fc
  .string({
    unit: fc.constantFrom(...Array.from('abcxyz ,="\\#\u00e9\u{1f600}')),
    minLength: 1,
    maxLength: 8,
  })
  // A backslash at the end, or before one of these, can't be written.
  .filter((text) => !/\\([,= "]|$)/.test(text) && text !== 'time');
const measurement = name.filter((text) => !/^[#\s,]/.test(text));

const value: fc.Arbitrary<FieldValue> = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((v): FieldValue => ['float', v]),
  fc.integer({ min: -100, max: 100 }).map((v): FieldValue => ['float', v / 8]),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((v): FieldValue => ['integer', v]),
  fc.integer().map((v): FieldValue => ['integer', BigInt(v)]),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((v): FieldValue => ['unsigned', v]),
  fc.string({ unit: 'binary' }).map((v): FieldValue => ['string', Buffer.from(v).toString()]),
  fc
    .string({ unit: fc.constantFrom('"', '\\', '\n', 'n', ',', ' ') })
    .map((v): FieldValue => ['string', v]),
  fc.boolean().map((v): FieldValue => ['boolean', v]),
);

const points: fc.Arbitrary<Point[]> = fc.array(
  fc.record({
    measurement: fc.oneof(fc.constantFrom('cpu', 'mem'), measurement),
    tags: fc
      .uniqueArray(fc.tuple(fc.oneof(fc.constantFrom('host', 'b'), name), name), {
        selector: ([key]) => key,
        maxLength: 4,
      })
      .map((tags) => tags.sort((a, b) => compareText(a[0], b[0]))),
    fields: fc
      .uniqueArray(fc.tuple(fc.oneof(fc.constantFrom('usage', 'x'), name), value), {
        selector: ([key]) => key,
        minLength: 1,
        maxLength: 5,
      })
      .map((fields) => Object.fromEntries(fields)),
    time: fc.oneof(
      fc.bigInt({ min: -9223372036854775806n, max: 9223372036854775806n }),
      fc.bigInt({ min: 1451606400000000000n, max: 1451606400900000000n }),
    ),
  }),
  { minLength: 1, maxLength: 30 },
);

function write(point: Point, turned: boolean): string {
  const escape = (text: string, characters: RegExp) => text.replace(characters, '\\$&');
  const tags = point.tags.map(([k, v]) => `,${escape(k, /[,= ]/g)}=${escape(v, /[,= ]/g)}`);
  const fields = Object.entries(point.fields).map(
    ([key, [type, v]]) => `${escape(key, /[,= "]/g)}=${writeValue(type, v)}`,
  );
  if (turned) {
    tags.reverse();
    fields.reverse();
  }
  return `${escape(point.measurement, /[, ]/g)}${tags.join('')} ${fields.join(',')} ${point.time}\n`;
}

function writeValue(type: FieldValue[0], v: FieldValue[1]): string {
  if (type === 'string') return `"${String(v).replace(/[\\"]/g, '\\$&')}"`;
  if (type === 'float') return Object.is(v, -0) ? '-0' : String(v);
  return `${v}${{ integer: 'i', unsigned: 'u', boolean: '' }[type]}`;
}

/** Points of different measurements lie in different groups, so their order is lost. */
function sorted(list: readonly Point[]): string[] {
  return list
    .map(({ measurement: m, tags, fields, time }) => {
      const values = Object.entries(fields).map(([key, [type, v]]) => {
        return `${key} ${type} ${Object.is(v, -0) ? '-0' : v}`;
      });
      return JSON.stringify([m, tags, values.sort(), String(time)]);
    })
    .sort();
}

const cutsOf = (length: number, shares: readonly number[]) =>
  shares.map((share) => Math.floor(share * length)).sort((a, b) => a - b);
const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 });

test('what was written is read again, however it comes in pieces', () => {
  fc.assert(
    fc.property(
      points,
      fc.array(fc.boolean()),
      shares,
      fc.integer({ min: 1, max: 9 }),
      (list, turned, where, rows) => {
        const body = Buffer.from(list.map((point, i) => write(point, turned[i] === true)).join(''));
        const parsed = parseBody(body, { cuts: cutsOf(body.length, where), limits: { rows } });
        expect(parsed.errors).toEqual([]);
        expect(sorted(parsed.points)).toEqual(sorted(list));
      },
    ),
    { numRuns: 200 },
  );
});

describe('numbers', () => {
  const check = (texts: readonly string[]) => {
    const { points: got, errors } = parseBody(
      texts.map((text, i) => `m f=${text} ${i}`).join('\n'),
    );
    expect(errors).toEqual([]);
    for (let i = 0; i < texts.length; i++) {
      const [type, v] = got[i]!.fields['f']!;
      expect(type).toBe('float');
      if (!Object.is(v, Number(texts[i]))) expect(`${texts[i]}: ${v}`).toBe(Number(texts[i]));
    }
  };
  const digits = (max: number) =>
    fc
      .array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: max })
      .map((d) => d.join(''));
  const sign = fc.constantFrom('', '-');

  test('of any number of digits are rounded as the language does', () => {
    const decimal = fc.tuple(sign, digits(22), digits(24)).map(([s, a, b]) => `${s}${a}.${b}`);
    fc.assert(fc.property(fc.array(decimal, { minLength: 50, maxLength: 100 }), check), {
      numRuns: 100,
    });
  });

  test('with an exponent as well', () => {
    const exponent = fc.integer({ min: -340, max: 290 });
    const scientific = fc
      .tuple(sign, digits(20), digits(8), fc.oneof(exponent, fc.integer({ min: -30, max: 30 })))
      .map(([s, a, b, e]) => `${s}${a}.${b}e${e}`)
      .filter((text) => Number.isFinite(Number(text)));
    fc.assert(fc.property(fc.array(scientific, { minLength: 50, maxLength: 100 }), check), {
      numRuns: 100,
    });
  });

  test('half way between two doubles, and next to it', () => {
    const texts = [];
    for (let i = 0; i < 2000; i++) {
      // An odd multiple of half a unit in the last place, which has all its digits after the point.
      const whole = 2 ** (20 + (i % 20)) + i;
      const ulp = 2n ** BigInt(52 - Math.floor(Math.log2(whole)) + 1);
      const shift = ulp.toString(2).length - 1;
      const fraction = (5n ** BigInt(shift)).toString().padStart(shift, '0');
      texts.push(
        `${whole}.${fraction}`,
        `${whole}.${fraction.slice(0, 19 - String(whole).length)}`,
      );
      texts.push(`${whole}.${fraction}1`, `${whole}.${fraction.slice(0, -1)}4`);
    }
    check(texts);
  });

  test('as other languages print doubles', () => {
    const double = fc.double({ noNaN: true, min: -1e21, max: 1e21 });
    fc.assert(
      fc.property(fc.array(double, { minLength: 50, maxLength: 100 }), (list) =>
        check(
          list.flatMap((v) => [v.toPrecision(17), v.toFixed(12), v.toExponential(), String(v)]),
        ),
      ),
      { numRuns: 50 },
    );
  });
});
