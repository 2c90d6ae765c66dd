import { describe, expect, test } from 'vitest';
import type { ResultSeries, Value } from '../influxql/result.ts';
import type { AnswerWriter } from './answer-writer.ts';
import { CsvWriter } from './csv-writer.ts';
import { JsonWriter } from './json-writer.ts';
import { epochUnit, TimeWriter } from './time-text.ts';

function series(more: Partial<ResultSeries> & { rows: number }): ResultSeries {
  return { columns: [], values: [], continues: false, ...more };
}

/** Rows 0 to n - 1, a second apart, with their number as the value. */
function counting(n: number, more: Partial<ResultSeries> = {}, from = 0): ResultSeries {
  const seconds = Float64Array.from({ length: n }, (_, i) => (from + i) * 1e9);
  return series({
    name: 'm',
    columns: ['time', 'v'],
    time: { base: 0, offsets: seconds },
    values: [Float64Array.from({ length: n }, (_, i) => from + i)],
    rows: n,
    ...more,
  });
}

function json(
  options: { epoch?: string; isPretty?: boolean; chunkSize?: number } = {},
): JsonWriter {
  return new JsonWriter({
    times: new TimeWriter(epochUnit(options.epoch ?? 'ns')),
    isPretty: options.isPretty ?? false,
    chunkSize: options.chunkSize,
  });
}

function write(writer: AnswerWriter, ...statements: (readonly ResultSeries[] | string)[]): string {
  for (const [id, statement] of statements.entries()) {
    writer.beginStatement(id);
    if (typeof statement === 'string') {
      writer.failStatement(statement, 0);
      continue;
    }
    for (const piece of statement) writer.rows(piece, 0, piece.rows);
    writer.endStatement([]);
  }
  writer.finish();
  return writer.out.take().toString();
}

describe('one document', () => {
  test('of a statement without rows', () => {
    expect(write(json(), [])).toBe('{"results":[{"statement_id":0}]}\n');
  });

  test("has keys in InfluxDB's order", () => {
    const piece = counting(2, {
      tags: [
        ['host', 'a"b'],
        ['zone', ''],
      ],
    });
    expect(write(json({ epoch: '' }), [piece])).toBe(
      '{"results":[{"statement_id":0,"series":[{"name":"m","tags":{"host":"a\\"b","zone":""},' +
        '"columns":["time","v"],"values":[["1970-01-01T00:00:00Z",0],["1970-01-01T00:00:01Z",1]]}]}]}\n',
    );
  });

  test('has values of every kind', () => {
    const cells: Value[] = [null, 1.5, -0, 9007199254740993n, 'x<y', true, false];
    const piece = series({
      columns: cells.map((_, i) => `c${i}`),
      values: cells.map((cell) => [cell]),
      rows: 1,
    });
    expect(write(json(), [piece])).toContain(
      '"values":[[null,1.5,-0,9007199254740993,"x\\u003cy",true,false]]',
    );
  });

  test('joins pieces of one series, and keeps series apart', () => {
    const pieces = [counting(1), counting(1, { continues: true }, 1), counting(1, {}, 2)];
    expect(write(json(), pieces)).toBe(
      '{"results":[{"statement_id":0,"series":[' +
        '{"name":"m","columns":["time","v"],"values":[[0,0],[1000000000,1]]},' +
        '{"name":"m","columns":["time","v"],"values":[[2000000000,2]]}]}]}\n',
    );
  });

  test('leaves out values where there are none', () => {
    const piece = series({ name: 'databases', columns: ['name'], values: [[]], rows: 0 });
    expect(write(json(), [piece])).toBe(
      '{"results":[{"statement_id":0,"series":[{"name":"databases","columns":["name"]}]}]}\n',
    );
  });

  test('marks a series of more than 10,000 rows', () => {
    const partial = (rows: number) =>
      write(json(), [counting(rows)]).includes(']],"partial":true}]}]}');
    expect(partial(10_000)).toBe(false);
    expect(partial(10_001)).toBe(true);
  });

  test('takes an error in place of what was written of the statement', () => {
    const writer = json();
    writer.beginStatement(0);
    writer.rows(counting(1), 0, 1);
    writer.endStatement([]);
    writer.beginStatement(1);
    writer.rows(counting(5000), 0, 5000);
    writer.failStatement('no more', 0);
    writer.finish();
    expect(writer.out.take().toString()).toBe(
      '{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time","v"],' +
        '"values":[[0,0]]}]},{"statement_id":1,"error":"no more"}]}\n',
    );
  });

  test('of a statement that others follow has their error instead of its own', () => {
    const writer = json();
    writer.beginStatement(0);
    writer.failStatement('bad', 2);
    writer.finish();
    expect(writer.out.take().toString()).toBe(
      '{"results":[{"statement_id":0,"error":"not executed"}]}\n',
    );
  });

  test('stays a document when the error comes after bytes were sent', () => {
    const writer = json();
    writer.beginStatement(0);
    writer.rows(counting(1), 0, 1);
    const sent = writer.out.take();
    writer.rows(counting(1, { continues: true }, 1), 0, 1);
    writer.failStatement('no more', 0);
    writer.finish();
    const text = sent.toString() + writer.out.take().toString();
    expect(JSON.parse(text)).toEqual({
      results: [
        {
          statement_id: 0,
          series: [
            {
              name: 'm',
              columns: ['time', 'v'],
              values: [
                [0, 0],
                [1e9, 1],
              ],
            },
          ],
          error: 'no more',
        },
      ],
    });
  });

  test('has messages', () => {
    const writer = json();
    writer.beginStatement(0);
    writer.endStatement([{ level: 'warning', text: 'deprecated' }]);
    writer.finish();
    expect(writer.out.take().toString()).toBe(
      '{"results":[{"statement_id":0,"messages":[{"level":"warning","text":"deprecated"}]}]}\n',
    );
  });

  test('pretty is as JSON.stringify has it', () => {
    const pieces = [counting(2, { tags: [['a', 'b']] }), counting(1, { columns: [] })];
    const text = write(json({ isPretty: true }), pieces, [], 'bad');
    expect(text).toBe(`${JSON.stringify(JSON.parse(text), undefined, 4)}\n`);
    expect(text).toContain('\n                        [\n                            0,\n');
  });

  test('no two ways of cutting a piece differ', () => {
    const piece = counting(100);
    const writer = json();
    writer.beginStatement(0);
    for (let from = 0; from < 100; from += 7) writer.rows(piece, from, Math.min(from + 7, 100));
    writer.endStatement([]);
    writer.finish();
    expect(writer.out.take().toString()).toBe(write(json(), [piece]));
  });
});

describe('chunked', () => {
  const documents = (text: string) => {
    expect(text.endsWith('\n')).toBe(true);
    return text
      .trimEnd()
      .split('\n')
      .map((line) => {
        const [result] = (JSON.parse(line) as { results: Record<string, unknown>[] }).results;
        const [one, ...others] = (result!['series'] ?? []) as Record<string, unknown>[];
        expect(others).toEqual([]);
        return {
          id: result!['statement_id'],
          name: one?.['name'],
          rows: (one?.['values'] as unknown[] | undefined)?.length,
          partial: [one?.['partial'] ?? false, result!['partial'] ?? false],
          error: result!['error'],
        };
      });
  };

  test('splits by rows and by series, and says what follows', () => {
    const pieces = [counting(3), counting(2, { continues: true }, 3), counting(2, { name: 'n' })];
    expect(documents(write(json({ chunkSize: 2 }), pieces))).toEqual([
      { id: 0, name: 'm', rows: 2, partial: [true, true], error: undefined },
      { id: 0, name: 'm', rows: 2, partial: [true, true], error: undefined },
      { id: 0, name: 'm', rows: 1, partial: [false, true], error: undefined },
      { id: 0, name: 'n', rows: 2, partial: [false, false], error: undefined },
    ]);
  });

  test('has a document for each statement', () => {
    const text = write(json({ chunkSize: 10 }), [], [counting(1)], 'bad');
    expect(text).toBe(
      '{"results":[{"statement_id":0}]}\n' +
        '{"results":[{"statement_id":1,"series":[{"name":"m","columns":["time","v"],"values":[[0,0]]}]}]}\n' +
        '{"results":[{"statement_id":2,"error":"bad"}]}\n',
    );
  });

  test('has one more for each statement that is not executed, under the number of the failed one', () => {
    const writer = json({ chunkSize: 2 });
    writer.beginStatement(3);
    writer.failStatement('bad', 2);
    expect(documents(writer.out.take().toString()).map(({ id, error }) => [id, error])).toEqual([
      [3, 'bad'],
      [3, 'not executed'],
      [3, 'not executed'],
    ]);
  });

  test('an error comes after what was found before it', () => {
    const writer = json({ chunkSize: 2 });
    writer.beginStatement(0);
    writer.rows(counting(3), 0, 3);
    writer.failStatement('no more', 0);
    expect(documents(writer.out.take().toString())).toEqual([
      { id: 0, name: 'm', rows: 2, partial: [true, true], error: undefined },
      { id: 0, name: 'm', rows: 1, partial: [false, true], error: undefined },
      { id: 0, name: undefined, rows: undefined, partial: [false, false], error: 'no more' },
    ]);
  });
});

describe('CSV', () => {
  const csv = () => new CsvWriter(new TimeWriter('ns'));

  test('has a header, and name and tags on every line', () => {
    const piece = counting(2, {
      tags: [
        ['host', 'a b'],
        ['z', '1,2'],
      ],
    });
    expect(write(csv(), [piece])).toBe(
      'name,tags,time,v\n' +
        'm,"host=a\\ b,z=1\\,2",0,0\n' +
        'm,"host=a\\ b,z=1\\,2",1000000000,1\n',
    );
  });

  test('leaves out empty tags', () => {
    const tags: [string, string][] = [
      ['a', ''],
      ['b', 'x'],
    ];
    expect(write(csv(), [counting(1, { tags })])).toBe('name,tags,time,v\nm,b=x,0,0\n');
  });

  test('repeats the header when the columns change, and for each statement', () => {
    const other = series({ columns: ['key'], values: [['x']], rows: 1 });
    expect(write(csv(), [counting(1), counting(1), other], [], [other])).toBe(
      'name,tags,time,v\nm,,0,0\nm,,0,0\n\nname,tags,key\n,,x\n\nname,tags,key\n,,x\n',
    );
  });

  test('quotes what needs it', () => {
    const cells: Value[] = ['a,b', 'say "x"', 'two\nlines', ' lead', '', null, 1e-7, true, 5n];
    const piece = series({
      name: 'm',
      columns: cells.map((_, i) => `c${i}`),
      values: cells.map((cell) => [cell]),
      rows: 1,
    });
    expect(write(csv(), [piece]).split('\n').slice(1).join('\n')).toBe(
      'm,,"a,b","say ""x""","two\nlines"," lead",,,0.0000001,true,5\n',
    );
  });
});
