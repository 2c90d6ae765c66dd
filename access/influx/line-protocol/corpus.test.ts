// The public corpus https://github.com/influxdata/line-protocol-corpus, which is not part of this
// repository: POLYROW_LINE_PROTOCOL_CORPUS names a directory with its corpus.json. It describes version 2
// of the syntax, which refuses control characters and invalid UTF-8 where InfluxDB 1.x, whose syntax ours
// is, stores them. Otherwise the two agree but for carriage returns and a tag named `time`.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseBody, type Point } from './parser-fixture.ts';

type Text = string | { binary: string };

interface CorpusPoint {
  time: string;
  name: Text;
  tags?: { key: Text; value: Text }[];
  fields: { key: Text; value: Record<string, unknown> }[];
}

interface CorpusEntry {
  input: { text: Text; defaultTime: string; precision: string };
  output: { error?: string; result?: CorpusPoint[] };
}

const directory = process.env['POLYROW_LINE_PROTOCOL_CORPUS'];
const path = directory === undefined ? '' : join(directory, 'corpus.json');
if (directory === undefined) {
  console.info('skipped: POLYROW_LINE_PROTOCOL_CORPUS does not name the line-protocol corpus');
}

test.skipIf(directory === undefined)('agrees with the public corpus', () => {
  expect(existsSync(path)).toBe(true);
  // Integers of 64 bits as strings.
  const json = readFileSync(path, 'utf8').replace(
    /"(time|defaultTime|int|uint)": (-?\d+)/g,
    '"$1": "$2"',
  );
  const entries = Object.values(
    (JSON.parse(json) as { decode: Record<string, CorpusEntry> }).decode,
  );
  const differences: unknown[] = [];
  for (const { input, output } of entries) {
    const body = bytes(input.text);
    const now = BigInt(input.defaultTime);
    const precision = input.precision.slice(1);
    const parsed = parseBody(body, { precision, now: Number(now / 1_000_000n) });
    const refused = parsed.badLines + parsed.dropped > 0;
    if (output.error !== undefined) {
      if (!refused && isPlain(body)) differences.push({ body: body.toString('latin1'), parsed });
      continue;
    }
    if (/\r|time=/.test(body.toString('latin1')) && refused) continue;
    const got = parsed.points.map(plain).sort();
    const wanted = output.result!.map(expected).sort();
    if (refused || got.join('\n') !== wanted.join('\n')) {
      differences.push({ body: body.toString('latin1'), got, wanted });
    }
  }
  expect(differences).toEqual([]);
});

function bytes(text: Text): Buffer {
  return typeof text === 'string' ? Buffer.from(text) : Buffer.from(text.binary, 'base64');
}

function words(text: Text): string {
  return bytes(text).toString('utf8');
}

/** No control characters, and valid UTF-8. */
function isPlain(body: Buffer): boolean {
  return !/[^\n -~\u0080-\uffff]|\ufffd/.test(body.toString('utf8'));
}

/** Times to the millisecond, since that is what a line without one gets. */
function plain(point: Point): string {
  const fields = Object.entries(point.fields).map(([name, [type, value]]) => [
    name,
    `${type} ${value}`,
  ]);
  const time = String(point.time / 1_000_000n);
  return JSON.stringify([point.measurement, point.tags, fields.sort(byName), time]);
}

function expected(point: CorpusPoint): string {
  const fields = new Map<string, string>();
  for (const { key, value } of point.fields) {
    const [[kind, content]] = Object.entries(value) as [[string, unknown]];
    const type =
      { int: 'integer', uint: 'unsigned', bool: 'boolean', binary: 'string' }[kind] ?? kind;
    const text = kind === 'binary' ? words({ binary: String(content) }) : String(content);
    fields.set(words(key), `${type} ${text}`);
  }
  const tags = (point.tags ?? []).map(({ key, value }) => [words(key), words(value)]);
  const time = String(BigInt(point.time) / 1_000_000n);
  return JSON.stringify([words(point.name), tags, [...fields].sort(byName), time]);
}

function byName(a: readonly string[], b: readonly string[]): number {
  return a[0]! < b[0]! ? -1 : 1;
}
