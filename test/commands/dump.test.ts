// DUMP and RESTORE, both ways between the transforms and redis-server.

import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { dumpCommands } from '../../access/redis/commands/dump.ts';
import { hashCommands } from '../../access/redis/commands/hash.ts';
import { keysCommands } from '../../access/redis/commands/keys.ts';
import { listCommands } from '../../access/redis/commands/list.ts';
import { setCommands } from '../../access/redis/commands/set.ts';
import { sortedSetCommands } from '../../access/redis/commands/sorted-set.ts';
import { streamCommands } from '../../access/redis/commands/stream.ts';
import { stringCommands } from '../../access/redis/commands/string.ts';
import { shortWork } from '../../universal-row/steps.ts';
import { Crc64 } from '../../universal-row/transforms/redis/rdb/crc64.ts';
import { Random } from '../support/random.ts';
import { Harness } from './harness.ts';
import { RedisServer, redisInstalled } from './redis-server.ts';
import { splitLine } from './resp.ts';
import { testTranscript } from './transcript.ts';

const specs = [
  ...dumpCommands,
  ...stringCommands,
  ...hashCommands,
  ...listCommands,
  ...setCommands,
  ...sortedSetCommands,
  ...streamCommands,
  ...keysCommands,
];

testTranscript(`${import.meta.dirname}/testdata/dump.txt`, specs);

const usual = { ...shortWork };
afterEach(() => Object.assign(shortWork, usual));

/** With the version and checksum that RESTORE wants. */
function payload(...parts: (Buffer | readonly number[] | string)[]): Buffer {
  const bytes = parts.map((part) => Buffer.from(part as string, 'latin1'));
  const body = Buffer.concat([...bytes, Buffer.from([10, 0])]);
  const crc = new Crc64();
  crc.add(body, 0, body.length);
  const sum = Buffer.alloc(8);
  crc.write(sum, 0);
  return Buffer.concat([body, sum]);
}

const edgeIntegers = [
  0, 12, 13, 63, 127, 128, -1, 4095, 4096, -4096, -4097, 32_767, -32_768, 32_768,
];
const wideIntegers = [8_388_607, 8_388_608, -8_388_609, 2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1].map(
  String,
);
const word = fc.oneof(
  fc.constantFrom(...edgeIntegers.map(String), ...wideIntegers, '9223372036854775807', '', '007'),
  fc.string({ unit: fc.constantFrom('a', 'b', '\xff'), minLength: 1, maxLength: 70 }),
  fc.constantFrom(63, 64, 65, 300, 5000, 9000, 17_000).map((n) => 'word '.repeat(n / 5)),
);
const words = fc.oneof(
  fc.array(word, { minLength: 1, maxLength: 20 }),
  fc.nat(600).map((n) => Array.from({ length: n + 1 }, (_, i) => String(i * 7))),
  fc.nat(600).map((n) => Array.from({ length: n + 1 }, (_, i) => `member ${i}`)),
  fc.constantFrom(9, 13, 200).map((n) => ['x'.repeat(n), '-9223372036854775808']),
);
const score = fc.oneof(
  fc.integer({ min: -5, max: 1e6 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom('inf', '-inf', 0.1, 1e20),
);

/** The commands that make key `k`. */
const making = fc.oneof(
  word.map((value) => ['SET', 'k', value]),
  words.map((all) => ['RPUSH', 'k', ...all]),
  words.map((all) => ['SADD', 'k', ...all]),
  words.map((all) => ['HSET', 'k', ...all.flatMap((field) => [field, field.slice(0, 90)])]),
  fc.tuple(words, fc.array(score, { minLength: 5, maxLength: 5 })).map(([all, scores]) => {
    return ['ZADD', 'k', ...all.flatMap((member, i) => [String(scores[i % 5]), member])];
  }),
);

const id = fc
  .tuple(fc.constantFrom('1', '2', '7000000000000', '18446744073709551614'), fc.nat(30))
  .map(([ms, seq]) => `${ms}-${seq}`);
const name = fc.constantFrom('a', 'b', '12', '\xff'.repeat(30));
/** One change to stream `k`; many of them are refused. */
const streamChange = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(id, word).map(([at, value]) => ['XADD', 'k', at, 'f', value]) },
  fc.tuple(id, words).map(([at, all]) => ['XADD', 'k', at, ...all.flatMap((one) => [one, one])]),
  fc.nat(300).map((n) => ['XADD', 'k', '8000000000000-*', 'f', 'v'.repeat(n), 'g', String(n)]),
  id.map((at) => ['XDEL', 'k', at]),
  fc.nat(10).map((n) => ['XTRIM', 'k', 'MAXLEN', String(n)]),
  fc.tuple(name, id).map(([group, at]) => ['XGROUP', 'CREATE', 'k', group, at, 'MKSTREAM']),
  fc.tuple(name, id, fc.nat(9)).map(([group, at, read]) => {
    return ['XGROUP', 'SETID', 'k', group, at, 'ENTRIESREAD', String(read)];
  }),
  fc.tuple(name, name).map(([group, who]) => ['XGROUP', 'CREATECONSUMER', 'k', group, who]),
  {
    weight: 4,
    arbitrary: fc.tuple(name, name, fc.nat(9)).map(([group, who, n]) => {
      return ['XREADGROUP', 'GROUP', group, who, 'COUNT', `${n + 1}`, 'STREAMS', 'k', '>'];
    }),
  },
  fc.tuple(name, id).map(([group, at]) => ['XACK', 'k', group, at]),
  fc.tuple(name, name, id).map(([group, who, at]) => {
    return ['XCLAIM', 'k', group, who, '0', at, 'TIME', '12345', 'RETRYCOUNT', '77', 'FORCE'];
  }),
);
const manyEntries = fc.nat(250).map((n) => {
  return Array.from({ length: n }, (_, i) => [
    'XADD',
    'k',
    '*',
    `f${i % 2}`,
    `${'v'.repeat(n)}${i}`,
  ]);
});
const streamChanges = fc.tuple(
  manyEntries,
  fc.array(streamChange, { minLength: 1, maxLength: 40 }),
);

type Run = (words: string[], sorted?: boolean) => string | Promise<string>;

async function contents(run: Run, key: string): Promise<string> {
  const lines: string[] = [];
  for (const line of ['TYPE k', 'GET k', 'LRANGE k 0 -1', 'ZRANGE k 0 -1 WITHSCORES', 'PTTL k']) {
    lines.push(await run(line.replace(' k', ` ${key}`).split(' ')));
  }
  const members = await run(['SMEMBERS', key], true);
  const fields = await run(['HKEYS', key], true);
  const values = await run(['HVALS', key], true);
  return [...lines, members, fields, values].join('\n');
}

describe.skipIf(!redisInstalled)('between here and redis-server 7.0', () => {
  let server: RedisServer;
  const theirs: Run = (line, sorted) => server.command(line, sorted);
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  test.each([
    ['short', usual],
    ['long', { elements: 0, bytes: 0 }],
  ])('values go both ways, %s', { timeout: 60_000 }, async (_, limits) => {
    Object.assign(shortWork, limits);
    await fc.assert(
      fc.asyncProperty(making, async (command) => {
        await server.run('FLUSHALL');
        const harness = new Harness(specs);
        const ours: Run = (line, sorted) => harness.command(line, sorted);
        expect(await ours(command)).toBe(await theirs(command));
        const expected = await contents(theirs, 'k');
        expect(await contents(ours, 'k')).toBe(expected);
        expect(harness.run(`RESTORE theirs 0 ${await server.run('DUMP k')}`)).toBe('OK');
        expect(await contents(ours, 'theirs')).toBe(expected);
        expect(harness.run(`RESTORE ours 0 ${harness.run('DUMP k')}`)).toBe('OK');
        expect(await contents(ours, 'ours')).toBe(expected);
        expect(await server.run(`RESTORE ours 0 ${harness.run('DUMP k')}`)).toBe('OK');
        expect(await contents(theirs, 'ours')).toBe(expected);
        expect(await theirs(['OBJECT', 'ENCODING', 'ours'])).toBe(
          await theirs(['OBJECT', 'ENCODING', 'k']),
        );
      }),
      { numRuns: 150 },
    );
  });

  /** All that a stream is, but for the nodes it lies in. */
  const streamContents = async (run: Run, key: string): Promise<string> => {
    const full = await run(['XINFO', 'STREAM', key, 'FULL', 'COUNT', '0']);
    return full.replaceAll(/"radix-tree-(keys|nodes)", \(integer\) \d+/g, '');
  };

  test.each([
    ['short', usual],
    ['long', { elements: 0, bytes: 0 }],
  ])('streams go both ways, %s', { timeout: 120_000 }, async (_, limits) => {
    Object.assign(shortWork, limits);
    await fc.assert(
      fc.asyncProperty(streamChanges, async ([entries, changes]) => {
        await server.run('FLUSHALL');
        for (const change of [...changes, ...entries, ...changes]) await theirs(change);
        const payload = await server.run('DUMP k');
        if (payload === '(nil)') return;
        const expected = await streamContents(theirs, 'k');
        const harness = new Harness(specs);
        const ours: Run = (line) => harness.command(line);
        expect(harness.run(`RESTORE k 0 ${payload}`)).toBe('OK');
        expect(await streamContents(ours, 'k')).toBe(expected);
        // Also with entries and groups that were created here.
        for (const change of [...changes, ['XADD', 'k', '18446744073709551615-1', 'f', 'v']]) {
          expect(await ours(change)).toBe(await theirs(change));
        }
        const changed = await streamContents(ours, 'k');
        const back = harness.run('DUMP k');
        expect(harness.run(`RESTORE ours 0 ${back}`)).toBe('OK');
        expect(await streamContents(ours, 'ours')).toBe(changed);
        expect(await server.run(`RESTORE ours 0 ${back}`)).toBe('OK');
        expect(await streamContents(theirs, 'ours')).toBe(changed);
      }),
      { numRuns: 100 },
    );
  });

  const ziplist = (...entries: number[][]): Buffer => {
    const body = entries.flat();
    const head = Buffer.alloc(10);
    head.writeUInt32LE(11 + body.length, 0);
    let before = 0;
    const withLengths = entries.map((entry) => {
      const bytes = [before, ...entry];
      before = bytes.length;
      return bytes;
    });
    const all = Buffer.from(withLengths.flat());
    head.writeUInt32LE(11 + all.length, 0);
    head.writeUInt32LE(10 + all.length - before, 4);
    head.writeUInt16LE(entries.length, 8);
    return Buffer.concat([head, all, Buffer.from([255])]);
  };
  const held = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const text = (word: string): number[] => [word.length, ...Buffer.from(word)];

  const old: [string, Buffer][] = [
    ['a list of strings', payload([1, 2], [1], 'a', [0xc0, 0xff])],
    [
      'a list in a ziplist',
      payload([10], held(ziplist(text('a'), [0xf3], [0xfe, 0x80], [0xc0, 1, 2]))),
    ],
    [
      'wide integers',
      payload(
        [10],
        held(ziplist([0xf0, 1, 2, 0x83], [0xd0, 1, 2, 3, 4], [0xe0, 1, 2, 3, 4, 5, 6, 7, 8])),
      ),
    ],
    [
      'a quicklist of ziplists',
      payload([14, 2], held(ziplist(text('a'))), held(ziplist(text('b'), text('c')))),
    ],
    ['a hash in a ziplist', payload([13], held(ziplist(text('f'), text('v'), text('g'), [0xf2])))],
    [
      'a zipmap',
      payload([9], held(Buffer.from([2, 1, 102, 1, 0, 118, 1, 103, 2, 1, 120, 121, 0, 255]))),
    ],
    [
      'a sorted set in a ziplist',
      payload([12], held(ziplist(text('a'), [0xf2], text('b'), text('1.5')))),
    ],
    [
      'a sorted set with scores as text',
      payload([3, 3], [1], 'a', [3], '1.5', [1], 'b', [254], [1], 'c', [255]),
    ],
    [
      'a set of integers',
      payload([11], held(Buffer.from([4, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255, 7, 0, 0, 0]))),
    ],
    ['a string with a long length', payload([0], [0x80, 0, 0, 0, 3], 'abc')],
    ['a string, compressed', payload([0], [0xc3, 5, 13], [0, 97, 0xe0, 3, 0])],
  ];

  test.each(old)('older encodings: %s', async (_, bytes) => {
    await server.run('FLUSHALL');
    const harness = new Harness(specs);
    const answer = await server.command(['RESTORE', 'k', '0', bytes] as string[]);
    expect(harness.command(['RESTORE', 'k', '0', bytes])).toBe(answer);
    const ours: Run = (line, sorted) => harness.command(line, sorted);
    expect(await contents(ours, 'k')).toBe(await contents(theirs, 'k'));
  });
});

describe('hostile payloads', () => {
  const runs = Number(process.env['RESTORE_FUZZ'] ?? 20_000);

  test(`${runs} of them are refused or restored, and nothing breaks`, {
    timeout: 36_000_000,
  }, () => {
    const seed = Number(process.env['FUZZ_SEED'] ?? 1);
    const random = new Random(seed);
    const harness = new Harness(specs);
    const makers = [
      'SET a hello',
      'SET a 12345',
      `RPUSH a ${'x 300 -70000 '.repeat(20)}${'y'.repeat(70)}`,
      'RPUSH a 1 a',
      'SADD a 1 2 70000 5000000000',
      'SADD a a b c 4',
      'HSET a f v g 12',
      `HSET a f ${'v'.repeat(100)}`,
      'ZADD a 1 a 2.5 b inf c',
      `ZADD a 1 ${'m'.repeat(100)}`,
      'XADD a 1-1 f v g 12',
      'XADD a 1-1 f v; XADD a 2-1 g w; XADD a 2-2 f x; XDEL a 2-1; XGROUP CREATE a g 0',
      'XADD a 1-1 f v; XADD a 2-1 f w; XGROUP CREATE a g 0; XGROUP CREATE a h 0; XREADGROUP GROUP g c STREAMS a >; XREADGROUP GROUP h c COUNT 1 STREAMS a >; XREADGROUP GROUP h d STREAMS a >',
    ];
    const seeds = makers.map((lines) => {
      harness.run('DEL a');
      for (const line of lines.split('; ')) harness.run(line);
      const [bytes] = splitLine(harness.run('DUMP a'));
      return bytes!.subarray(0, -10);
    });
    const types = [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21];
    const edges = [
      0, 1, 31, 32, 63, 64, 127, 128, 129, 191, 192, 193, 194, 195, 224, 240, 244, 253, 254, 255,
    ];
    for (let i = 0; i < runs; i++) {
      const bytes = Buffer.from(random.pick(seeds));
      if (random.chance(0.3)) bytes[0] = random.pick(types);
      for (let changes = random.below(4); changes >= 0; changes--) {
        bytes[random.below(bytes.length)] = random.chance(0.5)
          ? random.pick(edges)
          : random.below(256);
      }
      const cut = random.chance(0.2) ? bytes.subarray(0, random.below(bytes.length) + 1) : bytes;
      const answer = harness.command(['RESTORE', 'b', '0', payload(cut), 'REPLACE']);
      expect(answer).toMatch(/^(OK|\(error\) ERR Bad data format)$/);
      if (answer !== 'OK' || i % 16 !== 0) continue;
      // The restored value behaves like any other.
      expect(harness.run(`RESTORE c 0 ${harness.run('DUMP b')} REPLACE`)).toBe('OK');
      if (harness.run('TYPE b') !== 'stream') continue;
      expect(harness.run('XREADGROUP GROUP g c STREAMS b >')).not.toMatch(/internal/);
      harness.run('XADD b * f v');
      harness.run('XGROUP DESTROY b g');
    }
  });
});
