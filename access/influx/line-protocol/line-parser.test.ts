import { describe, expect, test, vi } from 'vitest';
import { LineParser } from './line-parser.ts';
import { type FieldValue, parseBody, parseWith, pointsOf } from './parser-fixture.ts';
import { SharedSeriesCache } from './series-cache-table.ts';

const float = (value: number): FieldValue => ['float', value];
const integer = (value: bigint): FieldValue => ['integer', value];
const text = (value: string): FieldValue => ['string', value];

/** The only point of a body. */
function point(body: string, precision?: string) {
  const parsed = parseBody(body, { now: 0, ...(precision === undefined ? {} : { precision }) });
  expect(parsed.errors).toEqual([]);
  expect(parsed.points).toHaveLength(1);
  const [only] = parsed.points;
  return { ...only!, fields: { ...only!.fields } };
}

describe('names', () => {
  const check = (key: string, measurement: string, tags: [string, string][]) => {
    const { measurement: m, tags: t } = point(`${key} f=1`);
    expect([m, t]).toEqual([measurement, tags]);
  };

  test('tags are sorted by key', () => {
    check('cpu,host=a,region=eu', 'cpu', [
      ['host', 'a'],
      ['region', 'eu'],
    ]);
    check('cpu,b=1,a=2,c=0', 'cpu', [
      ['a', '2'],
      ['b', '1'],
      ['c', '0'],
    ]);
    check('cpu', 'cpu', []);
    check('cpu,b\\ c=1,b!=2', 'cpu', [
      ['b c', '1'],
      ['b!', '2'],
    ]);
  });

  test('a backslash takes commas, spaces and equals signs literally, and nothing else', () => {
    check('a\\,b\\ c,t\\=\\,\\ k=v\\=\\,\\ w', 'a,b c', [['t=, k', 'v=, w']]);
    check('a=b,t=v', 'a=b', [['t', 'v']]);
    check('a\\=b,t=v', 'a\\=b', [['t', 'v']]);
    check('C:\\dir\\x,p=C:\\tmp\\y', 'C:\\dir\\x', [['p', 'C:\\tmp\\y']]);
    check('a\\\\,b,t=C:\\\\,x', 'a\\,b', [['t', 'C:\\,x']]);
    check('m,t=a"b', 'm', [['t', 'a"b']]);
    check('"m",t="v"', '"m"', [['t', '"v"']]);
  });

  test('all bytes are names', () => {
    check('größe,tag=wärme', 'größe', [['tag', 'wärme']]);
    check('a\tb,t=\x01', 'a\tb', [['t', '\x01']]);
    check('a\\\nb,t=x', 'a\\\nb', [['t', 'x']]);
    const { points } = parseBody(Buffer.from('m\xff,t=\xfe f=1', 'latin1'));
    expect(points[0]).toMatchObject({ measurement: 'm\ufffd', tags: [['t', '\ufffd']] });
  });

  test('field keys', () => {
    const check = (key: string, name: string) =>
      expect(point(`m ${key}=1`).fields).toEqual({ [name]: float(1) });
    check('a\\,b\\ c\\=d', 'a,b c=d');
    check('"a"', '"a"');
    check('\\"a', '"a');
    check('\\a', '\\a');
    check('a\tb', 'a\tb');
    check('a\\\nb', 'a\\\nb');
    check('__proto__', '__proto__');
  });
});

describe('values', () => {
  const check = (written: string, value: FieldValue) =>
    expect(point(`m f=${written} 1`).fields, written).toEqual({ f: value });

  test('floats', () => {
    for (const written of [
      '0',
      '1',
      '.5',
      '5.',
      '01',
      '-1',
      '-.5',
      '1E5',
      '1e5',
      '1.5e-7',
      '1e+3',
    ]) {
      check(written, float(Number(written)));
    }
    for (const written of ['-0', '1e-400', '0e999', '123456789012345', '1234567890123456789']) {
      check(written, float(Number(written)));
    }
    for (const written of ['0.1', '98.76543210987654', '3.141592653589793238462643383279502884']) {
      check(written, float(Number(written)));
    }
    check('1797693134862315708145274237317043567980e269', float(1.7976931348623157e308));
    check(`0.${'0'.repeat(400)}1`, float(0));
    check('9'.repeat(308), float(1e308));
  });

  test('integers have all 64 bits', () => {
    check('0i', integer(0n));
    check('-0i', integer(0n));
    check('042i', integer(42n));
    check('-58i', integer(-58n));
    check('9007199254740991i', integer(2n ** 53n - 1n));
    check('-9007199254740991i', integer(1n - 2n ** 53n));
    check('9007199254740992i', integer(2n ** 53n));
    check('-9007199254740993i', integer(-(2n ** 53n) - 1n));
    check('9223372036854775807i', integer(2n ** 63n - 1n));
    check('-9223372036854775808i', integer(-(2n ** 63n)));
    check('00000000000000000000009223372036854775807i', integer(2n ** 63n - 1n));
    check('1234567890123456789i', integer(1234567890123456789n));
    check('-4294967296000000000i', integer(-4294967296000000000n));
  });

  test('unsigned integers', () => {
    check('0u', ['unsigned', 0n]);
    check('42u', ['unsigned', 42n]);
    check('9007199254740992u', ['unsigned', 2n ** 53n]);
    check('18446744073709551615u', ['unsigned', 2n ** 64n - 1n]);
    check('10000000000000000000u', ['unsigned', 10n ** 19n]);
  });

  test('booleans', () => {
    for (const written of ['t', 'T', 'true', 'True', 'TRUE']) check(written, ['boolean', true]);
    for (const written of ['f', 'F', 'false', 'False', 'FALSE']) check(written, ['boolean', false]);
  });

  test('strings', () => {
    check('""', text(''));
    check('"a b,c=d"', text('a b,c=d'));
    check('"say \\"hi\\""', text('say "hi"'));
    check('"C:\\\\"', text('C:\\'));
    check('"\\n \\, \\= \\x"', text('\\n \\, \\= \\x'));
    check('"two\nlines\r\n"', text('two\nlines\r\n'));
    check('"\\\n"', text('\\\n'));
    check('"\u{1f600}"', text('\u{1f600}'));
    check(`"${'x'.repeat(100_000)}"`, text('x'.repeat(100_000)));
  });

  test('of several fields each has its own', () => {
    const { fields } = point('m a=1,b=2i,c="x",d=t,e=3u,ff="y" 1');
    expect(fields).toEqual({
      a: float(1),
      b: integer(2n),
      c: text('x'),
      d: ['boolean', true],
      e: ['unsigned', 3n],
      ff: text('y'),
    });
  });

  test('of one field twice in a line the last value stays', () => {
    expect(point('m a=1,b=2,a=3').fields).toEqual({ a: float(3), b: float(2) });
    expect(point('m a=1,a=3i').fields).toEqual({ a: integer(3n) });
    expect(point('m a=1,a="x",a=t,a=2').fields).toEqual({ a: float(2) });
    expect(point('m a="x",a="y"').fields).toEqual({ a: text('y') });
    expect(point('m a=9223372036854775807i,a=1i').fields).toEqual({ a: integer(1n) });
    expect(point('m \\"a=1,"a=2i').fields).toEqual({ '"a': integer(2n) });
  });
});

describe('times', () => {
  const check = (written: string, precision: string, time: bigint) =>
    expect(point(`m f=1 ${written}`, precision).time, `${written} ${precision}`).toBe(time);

  test('are in the unit of the request', () => {
    for (const unit of ['', 'n', 'ns', 'nonsense']) {
      check('1451606400123456789', unit, 1451606400123456789n);
    }
    for (const unit of ['u', 'us', '\u00b5', '\u03bcs']) check('1000001', unit, 1000001000n);
    check('1451606400123', 'ms', 1451606400123000000n);
    check('1451606400', 's', 1451606400000000000n);
    check('3', 'm', 180_000_000_000n);
    check('2', 'h', 7_200_000_000_000n);
    check('-1', 'h', -3_600_000_000_000n);
    check('-1500', 'ms', -1_500_000_000n);
  });

  test('reach from the first to the last of InfluxDB', () => {
    check('0', 'ns', 0n);
    check('-0', 'ns', 0n);
    check('-1', 'ns', -1n);
    check('000000000000000000000007', 'ns', 7n);
    check('9223372036854775806', 'ns', 9223372036854775806n);
    check('-9223372036854775806', 'ns', -9223372036854775806n);
    check('9223372036854775', 'us', 9223372036854775000n);
    check('2562047', 'h', 2562047n * 3_600_000_000_000n);
  });

  test('points without one share the time of the request, cut to the precision', () => {
    const now = 1451613784567.89;
    const check = (precision: string, time: bigint) => {
      const { points } = parseBody('m f=1\nm,a=b f=1 \nm f=2  \t\n', { now, precision });
      expect(points.map((p) => p.time)).toEqual([time, time, time]);
    };
    check('ns', 1451613784567000000n);
    check('us', 1451613784567000000n);
    check('ms', 1451613784567000000n);
    check('s', 1451613784000000000n);
    check('m', 1451613780000000000n);
    check('h', 1451613600000000000n);
  });
});

test('comments, blank lines and white space before and between the parts', () => {
  const body =
    '# a comment with a "quote and a=" sign\n\n  \t\n  #another\\\n' +
    '  m,host=cli v=9\n\t m   v=1   5   \nm v=2 \t 6\n \0m v=3 7\n#last';
  const parsed = parseBody(body);
  expect(parsed.errors).toEqual([]);
  expect(parsed.points.map((p) => [p.tags.length, p.fields['v'], p.time])).toEqual([
    [1, float(9), 0n],
    [0, float(1), 5n],
    [0, float(2), 6n],
    [0, float(3), 7n],
  ]);
  for (const empty of ['', '\n', ' ', '#', '# x', '\n\n#\n']) {
    expect(parseBody(empty)).toMatchObject({ points: [], goodLines: 0, badLines: 0 });
  }
});

describe('bad lines', () => {
  const outside = 'time outside range -9223372036854775806 - 9223372036854775806';
  const huge = '9223372036854775808';
  const table: [line: string, error: string][] = [
    ['m', 'missing fields'],
    ['m,t=v', 'missing fields'],
    ['\r', 'missing fields'],
    ['m\\ f=1', 'missing fields'],
    ['m ', 'invalid field format'],
    ['a b', 'invalid field format'],
    ['m f', 'invalid field format'],
    ['m f=1,g', 'invalid field format'],
    ['m f=1,', 'invalid field format'],
    ['m f=1,,g=2', 'invalid field format'],
    ['m f,g=1', 'invalid field format'],
    ['m f="a"b', 'invalid field format'],
    ['m f="a""b"', 'invalid field format'],
    ['m f="a"g="b"', 'invalid field format'],
    ['m f="a"\r', 'invalid field format'],
    ['m f\\=1', 'invalid field format'],
    [',t=v f=1', 'missing measurement'],
    ['m,=v f=1', 'missing tag key'],
    ['m, f=1', 'missing tag key'],
    ['m,t=v, f=1', 'missing tag key'],
    ['m,,t=v f=1', 'missing tag key'],
    ['m,', 'missing tag key'],
    ['m,t', 'missing tag value'],
    ['m,t f=1', 'missing tag value'],
    ['m,t,u=v f=1', 'missing tag value'],
    ['m,t= f=1', 'missing tag value'],
    ['m,t=,u=v f=1', 'missing tag value'],
    ['m,t=v=w f=1', 'invalid tag format'],
    ['m,t=v,t=w f=1', 'duplicate tags'],
    ['m,t=v,a=b,t=v f=1', 'duplicate tags'],
    ['m =1', 'missing field key'],
    ['m f=1,=2', 'missing field key'],
    ['m f=', 'missing field value'],
    ['m f= 1', 'missing field value'],
    ['m f=,g=1', 'missing field value'],
    ['m f=1,g=', 'missing field value'],
    ['m f="a', 'unbalanced quotes'],
    ['m f="a\\"', 'unbalanced quotes'],
    ['m f=a', 'invalid boolean'],
    ['m f=tr', 'invalid boolean'],
    ['m f=tRUE', 'invalid boolean'],
    ['m f=truee', 'invalid boolean'],
    ['m f=+1', 'invalid boolean'],
    ['m f=inf', 'invalid boolean'],
    ['m f=t\r', 'invalid boolean'],
    ['m f=i', 'invalid boolean'],
    ['m f=NaN', 'invalid number'],
    ['m f=n', 'invalid number'],
    ['m f=0x1', 'invalid number'],
    ['m f=1\r', 'invalid number'],
    ['m f=1a', 'invalid number'],
    ['m f=1.2.3', 'invalid number'],
    ['m f=1-2', 'invalid number'],
    ['m f=-', 'invalid number'],
    ['m f=.', 'invalid number'],
    ['m f=-.', 'invalid number'],
    ['m f=-i', 'invalid number'],
    ['m f=1.5i', 'invalid number'],
    ['m f=1e3i', 'invalid number'],
    ['m f=1ii', 'invalid number'],
    ['m f=9i10', 'invalid number'],
    ['m f=-1u', 'invalid number'],
    ['m f=1iu', 'invalid number'],
    ['m f=-Inf', 'invalid number'],
    ['m f=1e400', 'invalid float'],
    ['m f=-1e400', 'invalid float'],
    ['m f=1e', 'invalid float'],
    ['m f=1e5e6', 'invalid float'],
    ['m f=-e-e-e', 'invalid float'],
    [
      `m f=${huge}i`,
      `unable to parse integer ${huge}: strconv.ParseInt: parsing "${huge}": value out of range`,
    ],
    [
      `m f=-${huge.slice(0, -1)}9i`,
      `unable to parse integer -${huge.slice(0, -1)}9: strconv.ParseInt: parsing "-${huge.slice(0, -1)}9": value out of range`,
    ],
    [
      'm f=18446744073709551616u',
      'unable to parse unsigned 18446744073709551616: strconv.ParseUint: parsing "18446744073709551616": value out of range',
    ],
    ['m f=1 x', 'bad timestamp'],
    ['m f=1 1.5', 'bad timestamp'],
    ['m f=1 1i', 'bad timestamp'],
    ['m f=1 -', 'bad timestamp'],
    ['m f=1 --1', 'bad timestamp'],
    ['m f=1 12\r', 'bad timestamp'],
    ['m f=1 12\t', 'bad timestamp'],
    ['m f=1 ,g=2', 'bad timestamp'],
    ['m f=1 12 13', 'point is invalid'],
    ['m f=1 12 x', 'point is invalid'],
    [`m f=1 ${huge}`, outside],
    ['m f=1 9223372036854775807', outside],
    ['m f=1 -9223372036854775807', outside],
    ['m f=1 99999999999999999999999', outside],
    // The first thing wrong is told, in the order in which InfluxDB looks.
    ['m f,g=x', 'invalid boolean'],
    ['m,t f', 'missing tag value'],
    ['m,t=v,t=v', 'missing fields'],
  ];

  test.each(table)('%j: %s', (line, error) => {
    const parsed = parseBody(`m f=1 1\n${line}\n`, { limits: { rows: 1 } });
    expect(parsed.errors).toEqual([
      `unable to parse '${line}${line.startsWith('m f="a') && error.startsWith('unb') ? '\n' : ''}': ${error}`,
    ]);
    expect(parsed).toMatchObject({ goodLines: 1, badLines: 1, dropped: 0 });
    expect(parsed.points).toHaveLength(1);
    expect(parseBody(line).errors).toEqual([`unable to parse '${line}': ${error}`]);
  });

  test('leave nothing behind, and the lines around them are stored', () => {
    const body =
      'm a=1,b=2i,s="x" 1\n' +
      'm a=9,b=x,c=1 2\n' +
      'm a=9,d="y",s="lost",b=5i,a=3i 2 2\n' +
      'm a=2,b=3i,s="z" 3\n' +
      'n a=9,b=\n' +
      'm b=9223372036854775807i,a=1,zz= 4\n' +
      'm b=4i 5\n';
    const parsed = parseBody(body);
    expect(parsed.badLines).toBe(4);
    expect(parsed.points.map(({ fields, time }) => [{ ...fields }, time])).toEqual([
      [{ a: float(1), b: integer(2n), s: text('x') }, 1n],
      [{ a: float(2), b: integer(3n), s: text('z') }, 3n],
      [{ b: integer(4n) }, 5n],
    ]);
  });

  test('an open quote takes all the rest with it', () => {
    const { errors, points } = parseBody('m f=1\nm f="x\nm f=2\n', { cuts: [3, 8, 12] });
    expect(errors).toEqual([`unable to parse 'm f="x\nm f=2\n': unbalanced quotes`]);
    expect(points).toHaveLength(1);
  });

  test('many are counted, and the first ones are told', () => {
    const parsed = parseBody('bad\n'.repeat(250), { limits: { errors: 3 } });
    expect(parsed.badLines).toBe(250);
    expect(parsed.errors).toEqual(Array(3).fill("unable to parse 'bad': missing fields"));
  });

  test('a long one is told in part', () => {
    const { errors } = parseBody(`m,t=${'x'.repeat(10_000)}\n`, { limits: { errorBytes: 8 } });
    expect(errors).toEqual(["unable to parse 'm,t=xxxx...': missing fields"]);
  });

  test('are written as UTF-8, whatever they are', () => {
    const { errors } = parseBody(Buffer.from('m\xff\n', 'latin1'));
    expect(errors).toEqual(["unable to parse 'm\ufffd': missing fields"]);
  });
});

describe('time is no name', () => {
  test('a tag drops its point', () => {
    const parsed = parseBody('m,time=1 f=1\nm f=2\nm,a=b,time=1 f=1 77\nm,time=1 f=x\n');
    expect(parsed).toMatchObject({
      goodLines: 3,
      dropped: 2,
      badLines: 1,
      errors: ["unable to parse 'm,time=1 f=x': invalid boolean"],
      dropError: 'invalid tag key: input tag "time" on measurement "m" is invalid',
    });
    expect(parsed.points).toHaveLength(1);
  });

  test('a field is left out, and drops its point when it is the only one', () => {
    const parsed = parseBody('m time=1\nm time=1,f=2 5\nm f=2,time="x" 6\nm time=t,time=9e9\n');
    expect(parsed).toMatchObject({
      goodLines: 4,
      dropped: 2,
      badLines: 0,
      dropError: 'invalid field name: input field "time" on measurement "m" is invalid',
    });
    expect(parsed.points.map((p) => ({ ...p.fields }))).toEqual([{ f: float(2) }, { f: float(2) }]);
    expect(parseBody('m f=1,time=\n').errors).toHaveLength(1);
  });
});

describe('limits', () => {
  test('keys', () => {
    const limits = { keyBytes: 20 };
    const error = (line: string) => parseBody(line, { limits }).errors[0]?.split("': ")[1];
    expect(error(`m,t=${'v'.repeat(16)} f=1`)).toBe('max key length exceeded: 25 > 20');
    expect(error(`m,t=${'v'.repeat(11)} f=1`)).toBe(undefined);
    expect(error(`m,t=${'v'.repeat(11)} f=1,gg=1`)).toBe('max key length exceeded: 21 > 20');
    expect(error(`m,t=${'v'.repeat(17)} f=1`)).toBe('max key length exceeded: 21 > 20');
  });

  test('fields of one line', () => {
    const line = (count: number) =>
      `m ${Array.from({ length: count }, (_, i) => `f${i}=1`).join(',')}\n`;
    expect(parseBody(line(10_240)).points).toHaveLength(1);
    const { points, errors } = parseBody(`${line(16_385)}m f=1\n`);
    expect(points).toHaveLength(1);
    expect(errors[0]).toContain(': more than 10240 fields');
  });

  test('a tag value of 64,000 bytes and 10,000 fields are nothing special', () => {
    const value = 'v'.repeat(64_000);
    const names = Array.from({ length: 10_000 }, (_, i) => `field_${i}`);
    const body = `m,t=${value} ${names.map((name, i) => `${name}=${i}i`).join(',')} 1\n`;
    const cuts = Array.from({ length: Math.floor(body.length / 5000) }, (_, i) => (i + 1) * 5000);
    const { points } = parseBody(body + body, { cuts });
    expect(points).toHaveLength(2);
    expect(points[1]!.tags).toEqual([['t', value]]);
    expect(Object.keys(points[1]!.fields)).toEqual(names);
    expect(points[1]!.fields['field_9999']).toEqual(integer(9999n));
  });

  test('a line beyond the limit is an error, in one chunk or in many', () => {
    const body = `m f=1\nm f="${'x'.repeat(100)}"\nm f=3\n# ${'y'.repeat(200)}\nm f=4`;
    const limits = { lineBytes: 50, errorBytes: 10 };
    const errors = ["unable to parse 'm f=\"xxxxx...': line of more than 50 bytes"];
    const every = Array.from({ length: body.length - 1 }, (_, i) => i + 1);
    for (const cuts of [[], [20], [100], every]) {
      const parsed = parseBody(body, { cuts, limits });
      expect(parsed).toMatchObject({ errors, badLines: 1, goodLines: 3 });
    }
    expect(parseBody(`m f="${'x'.repeat(44)}"`, { limits }).goodLines).toBe(1);
    expect(parseBody(`m f="${'x'.repeat(45)}"`, { limits }).goodLines).toBe(0);
  });
});

describe('batches', () => {
  const lines = (n: number) => Array.from({ length: n }, (_, i) => `m,t=${i % 7} f=${i} ${i}\n`);

  test('are full at so many points, values or bytes', () => {
    const batches = (limits: object, body: string) => {
      const parsed = parseBody(body, { limits });
      expect(parsed.points.map((p) => p.time)).toEqual(parsed.points.map((_, i) => BigInt(i)));
      return [parsed.points.length, parsed.batches];
    };
    expect(batches({ rows: 10 }, lines(95).join(''))).toEqual([95, 10]);
    expect(batches({ rows: 10 }, lines(90).join(''))).toEqual([90, 9]);
    expect(batches({ values: 6 }, 'm a=1,b=2,c=3 0\nm a=1,b=2,c=3 1\nm a=1 2')).toEqual([3, 2]);
    expect(batches({ textBytes: 5 }, 'm a="xxx" 0\nm a="xx" 1\nm a="" 2')).toEqual([3, 2]);
  });

  test('stay small when each point has fields of its own', () => {
    const body = Array.from({ length: 3000 }, (_, i) => `m f${i}=1 ${i}\n`).join('');
    const parser = new LineParser(new SharedSeriesCache(), { values: 4096 });
    parser.begin({ now: 0 });
    parser.push(Buffer.from(body));
    parser.finish();
    let points = 0;
    for (let batch = parser.next(); batch !== undefined; batch = parser.next()) {
      const [group] = batch.groups;
      expect(group!.rows * group!.columns.length).toBeLessThan(17_000);
      points += pointsOf(batch).length;
    }
    expect(points).toBe(3000);
  });

  test('have times exactly, however far apart', () => {
    const times = [0n, 9223372036854775806n, -9223372036854775806n, 1n, 4503599627370496n];
    times.push(4503599627370497n, 1451606400000000001n, 1451606400000000002n);
    const { points, batches } = parseBody(times.map((t) => `m f=1 ${t}`).join('\n'));
    expect(points.map((p) => p.time)).toEqual(times);
    expect(batches).toBe(6);
  });

  test('keep a column dense as long as it can be', () => {
    const parser = new LineParser(new SharedSeriesCache());
    parser.begin({ now: 0 });
    parser.push(Buffer.from('m a=1,b=1\nm a=2,b=2,c=1\nm a=3\nm a=4,b=4,c=2\n'));
    parser.finish();
    const [group] = parser.next()!.groups;
    const shown = group!.columns.map((c) => [
      c.field,
      c.count,
      c.present && [...c.present.subarray(0, 4)],
    ]);
    expect(shown).toEqual([
      ['a', 4, undefined],
      ['b', 3, [1, 1, 0, 1]],
      ['c', 2, [0, 1, 0, 1]],
    ]);
  });

  test('one with a large integer is wide from its first row, the next one is not', () => {
    const parser = new LineParser(new SharedSeriesCache(), { rows: 3 });
    parser.begin({ now: 0 });
    parser.push(Buffer.from('m a=-1i\nm b=1\nm a=9007199254740993i\nm a=7i\nm a=8i\nm a=9i\n'));
    parser.finish();
    const [first] = parser.next()!.groups;
    expect([...first!.columns[0]!.wide!.subarray(0, 3)]).toEqual([-1n, 0n, 2n ** 53n + 1n]);
    const [second] = parser.next()!.groups;
    expect(second!.columns[0]!.wide).toBe(undefined);
    expect([...second!.columns[0]!.numbers.subarray(0, 3)]).toEqual([7, 8, 9]);
    expect(parser.next()).toBe(undefined);
  });

  test('a parser serves one request after another, whatever the last one left', () => {
    const parser = new LineParser(new SharedSeriesCache(), { rows: 2 });
    parser.begin({ now: 0 });
    parser.push(Buffer.from('m a=1\nm a=2,b="x"\nbad\nm a=3\nm f="open'));
    expect(parser.next()?.rows).toBe(2);
    const parsed = parseWith(parser, 'm a=4 60\n', { precision: 's' });
    expect(parsed).toMatchObject({ goodLines: 1, badLines: 0, errors: [] });
    expect(parsed.points).toEqual([
      expect.objectContaining({ fields: { a: float(4) }, time: 60_000_000_000n }),
    ]);
  });

  test('a chunk before the last one is done with is a mistake', () => {
    const parser = new LineParser(new SharedSeriesCache());
    parser.begin({ now: 0 });
    parser.push(Buffer.from('m a=1\n'));
    expect(() => parser.push(Buffer.from('m a=2\n'))).toThrow('unread input');
  });
});

test('new series fill a batch before known ones do', () => {
  const cache = new SharedSeriesCache();
  const lines = Array.from({ length: 5000 }, (_, i) => `m,t=${i} f=1 1\n`).join('');
  expect(parseBody(lines, { cache })).toMatchObject({ batches: 40, goodLines: 5000 });
  expect(parseBody(lines, { cache })).toMatchObject({ batches: 1, goodLines: 5000 });
});

test('the parser stops for others while lines give no points', () => {
  const most = (line: string): number => {
    const parser = new LineParser(new SharedSeriesCache());
    parser.begin({ now: 0 });
    parser.push(Buffer.from(`${line.repeat(Math.ceil(1_000_000 / line.length))}m f=1\n`));
    const bad: number[] = [];
    let before = 0;
    let points = 0;
    for (let batch = parser.next(); batch !== undefined; batch = parser.next()) {
      points += batch.rows;
      bad.push(parser.badLines - before);
      before = parser.badLines;
    }
    parser.finish();
    for (let batch = parser.next(); batch !== undefined; batch = parser.next())
      points += batch.rows;
    expect(points).toBe(1);
    expect(bad.length, line).toBeGreaterThan(1);
    return Math.max(...bad);
  };
  expect(most('bad\n')).toBeLessThan(400);
  expect(most(`m f=${'e'.repeat(500)}!\n`)).toBeLessThan(100);
  expect(most('\n')).toBe(0);
  expect(most('#\n')).toBe(0);
});

test('a line of many fields behind many lines of few has a batch of its own, and takes little memory', () => {
  const parser = new LineParser(new SharedSeriesCache());
  const fields = Array.from({ length: 10_000 }, (_, i) => `f${i}=${i}`).join(',');
  const narrow = 'm,t=a v=1 1\n'.repeat(4000);
  const wide = `m,t=a s="text",${fields} 2\n`;
  for (const body of [narrow + wide, wide + narrow, narrow + wide + narrow + wide, narrow]) {
    const cache = new SharedSeriesCache();
    parser.begin({ precision: 'ns', now: 0, cache });
    parser.push(Buffer.from(body));
    parser.finish();
    const counts = new Map<string, number>();
    for (let batch = parser.next(); batch !== undefined; batch = parser.next()) {
      expect(parser.heldBytes).toBeLessThan(64 * 1024 * 1024);
      for (const { columns, rows } of batch.groups) {
        counts.set('rows', (counts.get('rows') ?? 0) + rows);
        for (const { field, count, numbers } of columns) {
          counts.set(field, (counts.get(field) ?? 0) + count);
          if (field === 'f9999') expect(numbers[rows - 1] === 9999 || count < rows).toBe(true);
        }
      }
    }
    expect(parser.errors).toEqual([]);
    const narrows = body.split('v=1 ').length - 1;
    const wides = body.split('f9999=').length - 1;
    expect(counts.get('rows')).toBe(narrows + wides);
    expect([counts.get('v') ?? 0, counts.get('f0') ?? 0, counts.get('s') ?? 0]).toEqual([
      narrows,
      wides,
      wides,
    ]);
    expect(counts.get('f9999') ?? 0).toBe(wides);
  }
});

test('a line of very many new fields is read in parts, and keeps its place among the others', () => {
  const fields = Array.from({ length: 10_000 }, (_, i) => `f${i}=${i}`).join(',');
  for (const body of [
    `m v=1 1\nm ${fields} 2\nm v=2 3\n`,
    `m ${fields} 2\n`,
    `m ${fields},x=y 2\nm v=1 1\n`,
  ]) {
    const parser = new LineParser(new SharedSeriesCache());
    parser.begin({ precision: 'ns', now: 0 });
    parser.push(Buffer.from(body));
    parser.finish();
    const times: number[] = [];
    let pauses = 0;
    let most = 0;
    for (;;) {
      const before = parser.heldBytes;
      const batch = parser.next();
      // Each new field takes more than a kilobyte, with its place for values.
      most = Math.max(most, parser.heldBytes - before);
      if (batch === undefined) break;
      for (const group of batch.groups) times.push(...group.times.subarray(0, group.rows));
      if (batch.rows === 0) pauses++;
    }
    const isBad = body.includes('x=y');
    expect(parser.goodLines + parser.badLines).toBe(body.split('\n').length - 1);
    expect(parser.badLines).toBe(isBad ? 1 : 0);
    expect(times).toHaveLength(parser.goodLines);
    expect(pauses).toBeGreaterThanOrEqual(3);
    expect(most).toBeLessThan(3600 * 1200);
    expect(parser.heldBytes).toBeGreaterThan(10_000 * 1000);
  }
});

describe('a long line that comes in pieces', () => {
  const value = 'v'.repeat(3_000_000);
  const line = `m,t=a f="${value}",n=7i 5\n`;
  const cutsAt = (bytes: number): number[] =>
    Array.from({ length: Math.floor(line.length / bytes) }, (_, n) => (n + 1) * bytes);

  test.each([1000, 65_536, 500_000])('of %i bytes is one point', (bytes) => {
    const parser = new LineParser(new SharedSeriesCache());
    const { errors, points } = parseWith(parser, `${line}m n=8i 6\n`, { cuts: cutsAt(bytes) });
    expect(errors).toEqual([]);
    expect(points.map(({ fields }) => fields['n'])).toEqual([integer(7n), integer(8n)]);
    expect(points[0]!.fields['f']?.[1] === value).toBe(true);
    expect(parser.heldBytes).toBeLessThan(2 * value.length);
  });

  test('is shown by its beginning where it is too long, and what follows is read', () => {
    const limits = { lineBytes: 2_000_000, errorBytes: 10 };
    const parser = new LineParser(new SharedSeriesCache(), limits);
    const cuts = cutsAt(65_536);
    const { errors, points } = parseWith(parser, `${line}m n=8i 6\n`, { cuts });
    expect(errors).toEqual(["unable to parse 'm,t=a f=\"v...': line of more than 2000000 bytes"]);
    expect(points).toHaveLength(1);
  });

  test('is not copied again and again', () => {
    const copy = vi.spyOn(Buffer.prototype, 'copy');
    const parser = new LineParser(new SharedSeriesCache());
    try {
      parser.begin({ precision: '', now: 0 });
      const bytes = Buffer.from(line.slice(0, -1));
      for (let at = 0; at < bytes.length; at += 65_536) {
        parser.push(bytes.subarray(at, at + 65_536));
        expect(parser.next()).toBeUndefined();
      }
      const copied = copy.mock.results.reduce((sum, { value: one }) => sum + Number(one), 0);
      expect(copied).toBeLessThan(1.2 * line.length);
      expect(parser.heldBytes).toBeLessThan(1.2 * line.length);
    } finally {
      copy.mockRestore();
    }
  });
});
