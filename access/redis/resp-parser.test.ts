import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { Arguments } from '../../universal-row/arguments.ts';
import { carryBuffers } from './carry-buffers.ts';
import { defaultLimits, ProtocolError, RespParser, unauthenticatedLimits } from './resp-parser.ts';

const shared = Buffer.alloc(80_000);

/** All commands in a stream given in pieces, as latin1 words; the error's text last if it breaks off. */
function commandsIn(pieces: readonly Buffer[], limits = defaultLimits): string[][] {
  const parser = new RespParser(limits);
  const args = new Arguments();
  const commands: string[][] = [];
  try {
    for (const piece of pieces) {
      // All chunks come in the same memory, as from the sockets of one thread.
      parser.push(shared, piece.copy(shared), args);
      while (parser.next(args)) {
        commands.push(
          Array.from({ length: args.count }, (_, i) => args.bytes(i).toString('latin1')),
        );
      }
      parser.detach(args);
      shared.fill(0xff);
    }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    commands.push([`! ${error.message}`]);
  }
  return commands;
}

function parse(text: string, limits = defaultLimits): string[][] {
  return commandsIn([Buffer.from(text, 'latin1')], limits);
}

function encode(words: readonly Uint8Array[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words)
    parts.push(Buffer.from(`$${word.length}\r\n`), Buffer.from(word), Buffer.from('\r\n'));
  return Buffer.concat(parts);
}

describe('arrays of bulk strings', () => {
  const cases: [string, string, string[][]][] = [
    ['one command', '*1\r\n$4\r\nPING\r\n', [['PING']]],
    ['two in a row', '*1\r\n$1\r\na\r\n*2\r\n$1\r\nb\r\n$0\r\n\r\n', [['a'], ['b', '']]],
    ['line breaks inside a word', '*1\r\n$4\r\n\r\n\r\n\r\n', [['\r\n\r\n']]],
    ['empty and negative arrays are skipped', '*0\r\n*-1\r\n*1\r\n$1\r\na\r\n', [['a']]],
    ['a length of four digits', `*1\r\n$1000\r\n${'x'.repeat(1000)}\r\n`, [['x'.repeat(1000)]]],
    ['a length that is no number', '*1\r\n$x\r\n', [['! Protocol error: invalid bulk length']]],
    ['a negative length', '*1\r\n$-1\r\n', [['! Protocol error: invalid bulk length']]],
    [
      'a length over the limit',
      '*1\r\n$536870913\r\n',
      [['! Protocol error: invalid bulk length']],
    ],
    [
      'an array length that is no number',
      '*a\r\n',
      [['! Protocol error: invalid multibulk length']],
    ],
    ['a huge array length', '*3000000000\r\n', [['! Protocol error: invalid multibulk length']]],
    ['something else than a word', '*1\r\n+OK\r\n', [["! Protocol error: expected '$', got '+'"]]],
    [
      'a command before the error',
      '*1\r\n$1\r\na\r\n*x\r\n',
      [['a'], ['! Protocol error: invalid multibulk length']],
    ],
    ['a billion words that never come', '*1000000000\r\n$1\r\na\r\n', []],
  ];
  test.each(cases)('%s', (_name, text, expected) => {
    expect(parse(text)).toEqual(expected);
  });

  test('a header line without an end is cut off', () => {
    expect(parse(`*${'1'.repeat(70_000)}`)).toEqual([
      ['! Protocol error: too big mbulk count string'],
    ]);
  });

  test('clients that have not said who they are get little room', () => {
    expect(parse('*11\r\n', unauthenticatedLimits)).toEqual([
      ['! Protocol error: unauthenticated multibulk length'],
    ]);
    expect(parse('*1\r\n$16385\r\n', unauthenticatedLimits)).toEqual([
      ['! Protocol error: unauthenticated bulk length'],
    ]);
  });

  test('a request is bounded even if its end never comes', () => {
    const limits = { ...defaultLimits, queryBytes: 100_000 };
    const piece = Buffer.alloc(60_000, 'x');
    const [last] = commandsIn([Buffer.from('*1\r\n$200000\r\n'), piece, piece], limits);
    expect(last![0]).toContain('client-query-buffer-limit');
  });
});

describe('inline commands', () => {
  const cases: [string, string, string[][]][] = [
    ['words', 'SET a  b\r\n', [['SET', 'a', 'b']]],
    ['a bare line feed', 'PING\n', [['PING']]],
    ['empty lines are skipped', '\r\n\r\nPING\r\n', [['PING']]],
    ['double quotes', 'SET "a b" "\\x41\\n\\"" \r\n', [['SET', 'a b', 'A\n"']]],
    ['single quotes', "SET 'a \\' b'\r\n", [['SET', "a ' b"]]],
    ['an empty word', 'SET ""\r\n', [['SET', '']]],
    [
      'quotes that do not match',
      'SET "a\r\n',
      [['! Protocol error: unbalanced quotes in request']],
    ],
    ['text behind a quote', 'SET "a"b\r\n', [['! Protocol error: unbalanced quotes in request']]],
    ['mixed with arrays', 'PING\r\n*1\r\n$1\r\na\r\nPING\r\n', [['PING'], ['a'], ['PING']]],
  ];
  test.each(cases)('%s', (_name, text, expected) => {
    expect(parse(text)).toEqual(expected);
  });

  test('a line without an end is cut off', () => {
    expect(parse('x'.repeat(70_000))).toEqual([['! Protocol error: too big inline request']]);
  });
});

test('however a stream is cut, the same commands come out', () => {
  const word = fc.uint8Array({ maxLength: 300 });
  fc.assert(
    fc.property(
      fc.array(fc.array(word, { minLength: 1, maxLength: 5 }), { maxLength: 8 }),
      fc.array(fc.nat(4000), { maxLength: 12 }),
      (commands, cuts) => {
        const stream = Buffer.concat(commands.map(encode));
        const points = [...new Set(cuts.map((cut) => cut % (stream.length + 1)))].sort(
          (a, b) => a - b,
        );
        const pieces: Buffer[] = [];
        let from = 0;
        for (const point of [...points, stream.length]) {
          pieces.push(stream.subarray(from, point));
          from = point;
        }
        const expected = commands.map((words) =>
          words.map((w) => Buffer.from(w).toString('latin1')),
        );
        expect(commandsIn(pieces.filter((piece) => piece.length > 0))).toEqual(expected);
      },
    ),
  );
});

test('split at every byte', () => {
  const stream = Buffer.concat([
    encode([Buffer.from('SET'), Buffer.from('key'), Buffer.alloc(130, 'v')]),
    Buffer.from('PING "x y"\r\n'),
    encode([Buffer.from('GET'), Buffer.from('')]),
  ]);
  const whole = commandsIn([stream]);
  expect(whole).toHaveLength(3);
  for (let at = 1; at < stream.length; at++) {
    expect(commandsIn([stream.subarray(0, at), stream.subarray(at)])).toEqual(whole);
  }
  expect(commandsIn(Array.from(stream, (byte) => Buffer.from([byte])))).toEqual(whole);
});

test('any bytes give commands or a protocol error, never anything else', () => {
  const alphabet = fc.constantFrom(...Buffer.from('*$:0123456789-\r\n"\'\\ aPING'));
  fc.assert(
    fc.property(fc.array(fc.oneof(alphabet, fc.nat(255)), { maxLength: 200 }), (bytes) => {
      commandsIn([Buffer.from(bytes)]);
    }),
    { numRuns: process.env.POLYROW_FULL === '1' ? 1_000_000 : 20_000 },
  );
});

describe('a buffer of its own', () => {
  const text = (n: number): string =>
    `*2\r\n$3\r\nGET\r\n$8\r\nkey-${n.toString().padStart(4)}\r\n`;
  const wordsOf = (args: Arguments): string[] =>
    Array.from({ length: args.count }, (_, i) => args.bytes(i).toString('latin1'));

  /** A parser with a command in its own buffer, and nothing behind it. */
  function carrying(n: number): { parser: RespParser; args: Arguments } {
    const parser = new RespParser();
    const args = new Arguments();
    parser.push(shared, shared.write(text(n).slice(0, 20), 'latin1'), args);
    expect(parser.next(args)).toBe(false);
    parser.detach(args);
    parser.push(shared, shared.write(text(n).slice(20), 'latin1'), args);
    expect(parser.next(args)).toBe(true);
    return { parser, args };
  }

  test('is used again by the next one that needs it', () => {
    const { parser, args } = carrying(1);
    const before = carryBuffers.bytes;
    parser.release();
    expect(carryBuffers.bytes).toBeGreaterThan(before);
    const other = carrying(2);
    expect(carryBuffers.bytes).toBe(before);
    expect(other.args.buf).toBe(args.buf);
  });

  test('is not, while a command looks into it', () => {
    const { parser, args } = carrying(1);
    parser.lend();
    parser.push(shared, shared.write(text(3), 'latin1'), new Arguments());
    parser.release();
    const others = Array.from({ length: 8 }, (_, i) => carrying(10 + i));
    expect(wordsOf(args)).toEqual(['GET', 'key-   1']);
    expect(others.map((other) => wordsOf(other.args)[1])).toEqual(
      others.map((_, i) => `key-  ${10 + i}`),
    );
  });
});

test('less than half of a long string is copied while it arrives', () => {
  const take = vi.spyOn(carryBuffers, 'take');
  const length = 8 * 1024 * 1024;
  const parser = new RespParser();
  const args = new Arguments();
  const chunk = Buffer.alloc(64 * 1024, 'v');
  let taken: number[] = [];
  try {
    const head = Buffer.from(`*2\r\n$4\r\nECHO\r\n$${length}\r\n`);
    parser.push(head, head.length, args);
    expect(parser.next(args)).toBe(false);
    parser.detach(args);
    for (let sent = 0; sent < length; sent += chunk.length) {
      parser.push(chunk, chunk.length, args);
      expect(parser.next(args)).toBe(false);
      parser.detach(args);
    }
    parser.push(Buffer.from('\r\n'), 2, args);
    expect(parser.next(args)).toBe(true);
    expect(args.lens[1]).toBe(length);
    taken = take.mock.calls.map(([bytes]) => bytes);
  } finally {
    take.mockRestore();
  }
  // Each but the last was copied into the next.
  const copied = taken.slice(0, -1).reduce((sum, bytes) => sum + bytes, 0);
  expect(copied).toBeLessThan(length / 2);
  expect(taken.at(-1)).toBeLessThan(length + 1024);
});

test('room for a long string is made before the next read, when the parser is told to', () => {
  const length = 8 * 1024 * 1024;
  const parser = new RespParser();
  const args = new Arguments();
  const chunk = Buffer.alloc(64 * 1024, 'v');
  const head = Buffer.from(`*2\r\n$4\r\nECHO\r\n$${length}\r\n`);
  parser.push(head, head.length, args);
  expect(parser.next(args)).toBe(false);
  const copies: boolean[] = [];
  const take = vi.spyOn(carryBuffers, 'take');
  try {
    for (let sent = 0; sent < length; sent += chunk.length) {
      expect(parser.awaitsMore).toBe(true);
      const isLarge = sent > 1024 * 1024;
      take.mockClear();
      parser.push(chunk, chunk.length, args);
      parser.detach(args);
      if (isLarge) copies.push(take.mock.calls.length > 0);
      if (parser.isFull) parser.makeRoom(args);
    }
  } finally {
    take.mockRestore();
  }
  // A push of a large read never copies what came before it.
  expect(copies.length).toBeGreaterThan(100);
  expect(copies).not.toContain(true);
  parser.push(Buffer.from('\r\n'), 2, args);
  expect([parser.awaitsMore, parser.next(args), args.lens[1]]).toEqual([false, true, length]);
});

test('the words of a long command that waits stay where they came, those of a small one are to be copied', () => {
  const words = Array.from({ length: 20_000 }, (_, n) => `word-${n}`);
  const text = `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
  const chunk = Buffer.alloc(16 * 1024);
  const parser = new RespParser();
  const args = new Arguments();
  const send = (bytes: string): boolean => {
    parser.push(chunk, chunk.write(bytes, 'latin1'), args);
    return parser.next(args);
  };
  for (let at = 0; at < text.length; at += chunk.length) {
    const isWhole = send(text.slice(at, at + chunk.length));
    if (!isWhole) parser.detach(args);
  }
  expect(parser.mayLend(args)).toBe(true);
  parser.lend();
  parser.detach(args);
  // Later input is buffered, and does not change the arguments of the waiting command.
  for (let n = 0; n < 100; n++) {
    parser.push(chunk, chunk.write('*1\r\n$4\r\nPING\r\n'), new Arguments());
    parser.detach(new Arguments());
    chunk.fill(0xff);
  }
  const found = Array.from({ length: args.count }, (_, i) => args.bytes(i).toString());
  expect(found).toEqual(words);
  parser.release();

  const small = new RespParser();
  const few = new Arguments();
  small.push(chunk, chunk.write('*1\r\n$4\r\nPING\r\n'), few);
  expect([small.next(few), small.mayLend(few)]).toEqual([true, false]);
});
