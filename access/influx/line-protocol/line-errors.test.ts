import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lineError, numberKind } from './line-errors.ts';
import { TimeReader } from './timestamp.ts';

const bytes = (text: string): number[] => Array.from(Buffer.from(text, 'latin1'));

/** As the texts of InfluxDB tell values apart. */
function expectedKind(text: string): string {
  if (/^-?[0-9]+i$/.test(text)) return 'integer';
  if (/^[0-9]+u$/.test(text)) return 'unsigned';
  if (text.split('.').length > 2) return 'number';
  const isScientific = /^-?[0-9.eE]*([eE][+-]?[0-9.]*)+$/.test(text);
  return isScientific || /^-?[0-9.]*[0-9][0-9.]*$/.test(text) ? 'float' : 'number';
}

test('a bad number is told apart by its characters', () => {
  const text = fc.string({ unit: fc.constantFrom(...Array.from('0123.eE+-iux')), maxLength: 9 });
  fc.assert(
    fc.property(text, (value) => {
      expect(numberKind(bytes(value), 0, value.length), value).toBe(expectedKind(value));
    }),
    { numRuns: 5000 },
  );
});

describe('each byte of a bad value is read once', () => {
  test.each([
    ['e', '!'],
    ['9', 'x'],
    ['.', ''],
    ['e+', '!'],
    ['1e', '.'],
    ['-', ''],
  ])('%s repeated, then %s', (unit, end) => {
    const value = bytes(unit.repeat(5000) + end);
    let reads = 0;
    const counted = new Proxy(value, {
      get: (target, key) => {
        reads++;
        return Reflect.get(target, key) as unknown;
      },
    });
    numberKind(counted, 0, value.length);
    expect(reads).toBeLessThanOrEqual(value.length + 1);
  });
});

test('the text of an error is short, however long the line is', () => {
  const time = new TimeReader();
  const long = [
    `m f=${'9'.repeat(80_000)}i\n`,
    `m f=${'e'.repeat(80_000)}!\n`,
    `m f=${'9'.repeat(80_000)}x\n`,
    `m,t=${'\\'.repeat(80_000)} f=1,g\n`,
  ];
  for (const line of long) {
    const error = lineError(Buffer.from(line), 0, line.length - 1, 65_535, time);
    expect(error).not.toBe('');
    expect(error.length).toBeLessThan(700);
  }
});
