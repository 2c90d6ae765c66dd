import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TextBuffer } from './text-buffer.ts';
import { epochUnit, TimeWriter } from './time-text.ts';
import { offsetsOf } from './zone-offset.ts';

const nanosPerSecond = 1_000_000_000n;

function written(nanos: bigint, epoch: string, zone?: string, base?: bigint): string {
  const out = new TextBuffer(8);
  const writer = new TimeWriter(epochUnit(epoch));
  writer.zone = offsetsOf(zone);
  const seconds = base ?? nanos / nanosPerSecond;
  writer.write(out, Number(seconds), Number(nanos - seconds * nanosPerSecond));
  return out.take().toString();
}

/** Any valid time, and a base so near that the offset is exact. */
const times = fc
  .tuple(
    fc.oneof(
      fc.bigInt({ min: -9223372036854775806n, max: 9223372036854775806n }),
      fc.bigInt({ min: -5n * nanosPerSecond, max: 5n * nanosPerSecond }),
      fc.bigInt({ min: 0n, max: 2_000_000_000n }).map((seconds) => seconds * nanosPerSecond),
    ),
    fc.bigInt({ min: -9_000_000n, max: 9_000_000n }),
  )
  .map(([nanos, away]) => ({ nanos, base: nanos / nanosPerSecond + away }));

describe('counted from 1970', () => {
  const units = { '': 1n, ns: 1n, u: 1000n, ms: 1_000_000n, s: nanosPerSecond };
  const more = { m: 60n * nanosPerSecond, h: 3600n * nanosPerSecond, bogus: 1n };

  for (const [epoch, unit] of Object.entries({ ...units, ...more })) {
    if (epoch === '') continue;
    test(`in ${epoch}, cut towards zero`, () => {
      fc.assert(
        fc.property(times, ({ nanos, base }) => {
          expect(written(nanos, epoch, undefined, base)).toBe(String(nanos / unit));
        }),
      );
    });
  }
});

describe('RFC 3339', () => {
  const check = (nanos: bigint, expected: string, zone?: string) =>
    expect(written(nanos, '', zone)).toBe(expected);

  test('has the digits it needs', () => {
    check(0n, '1970-01-01T00:00:00Z');
    check(1n, '1970-01-01T00:00:00.000000001Z');
    check(1_500_000_000n, '1970-01-01T00:00:01.5Z');
    check(-1n, '1969-12-31T23:59:59.999999999Z');
    check(9223372036854775806n, '2262-04-11T23:47:16.854775806Z');
    check(-9223372036854775806n, '1677-09-21T00:12:43.145224194Z');
  });

  test('agrees with Date on every time', () => {
    fc.assert(
      fc.property(times, ({ nanos, base }) => {
        const millis = Number(
          (nanos - (((nanos % nanosPerSecond) + nanosPerSecond) % nanosPerSecond)) / 1_000_000n,
        );
        const fraction = ((nanos % nanosPerSecond) + nanosPerSecond) % nanosPerSecond;
        const digits = String(fraction).padStart(9, '0').replace(/0+$/, '');
        const whole = new Date(millis).toISOString().slice(0, 19);
        expect(written(nanos, '', undefined, base)).toBe(
          `${whole}${digits === '' ? '' : `.${digits}`}Z`,
        );
      }),
    );
  });

  test('shows the offset of a zone, on both sides of a change', () => {
    const at = (text: string) => BigInt(Date.parse(text)) * 1_000_000n;
    check(at('2021-01-15T12:00:00Z'), '2021-01-15T13:00:00+01:00', 'Europe/Paris');
    check(at('2021-03-28T00:59:59Z'), '2021-03-28T01:59:59+01:00', 'Europe/Paris');
    check(at('2021-03-28T01:00:00Z'), '2021-03-28T03:00:00+02:00', 'Europe/Paris');
    check(at('2021-01-15T12:00:00Z'), '2021-01-15T12:00:00Z', 'Europe/London');
    check(at('2021-01-15T12:00:00Z'), '2021-01-15T08:30:00-03:30', 'America/St_Johns');
    check(at('2021-01-15T12:00:00Z'), '2021-01-15T12:00:00Z', 'UTC');
  });

  test('one writer goes through days and zones', () => {
    const out = new TextBuffer();
    const writer = new TimeWriter(undefined);
    const lines: string[] = [];
    for (const seconds of [86_399, 86_400, 1, 172_800]) {
      writer.write(out, seconds, 0);
      lines.push(out.take().toString());
    }
    expect(lines).toEqual([
      '1970-01-01T23:59:59Z',
      '1970-01-02T00:00:00Z',
      '1970-01-01T00:00:01Z',
      '1970-01-03T00:00:00Z',
    ]);
  });
});
