import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hyperloglogCommands } from '../../access/redis/commands/hyperloglog.ts';
import { keysCommands } from '../../access/redis/commands/keys.ts';
import { listCommands } from '../../access/redis/commands/list.ts';
import { stringCommands } from '../../access/redis/commands/string.ts';
import { oneOf, several, testDifferential, words } from './differential.ts';
import { Harness } from './harness.ts';
import { testTranscript } from './transcript.ts';

const specs = [...hyperloglogCommands, ...stringCommands, ...keysCommands, ...listCommands];

testTranscript(`${import.meta.dirname}/testdata/hyperloglog.txt`, specs);

const key = oneOf('a', 'b', 'c', 'd');
const element = fc.oneof(
  fc.nat(5000).map(String),
  fc.string({ unit: fc.constantFrom('x', 'y', 'z'), minLength: 1, maxLength: 40 }),
);
/** Enough to make a sparse one dense, in one command. */
const many = fc.nat(1000).map((from) => {
  return Array.from({ length: 900 }, (_, i) => `${from}-${i}`).join(' ');
});

testDifferential(
  specs,
  fc.oneof(
    words('PFADD', key, several(element, 60)),
    words('PFADD', key, many),
    words('PFADD', key),
    // Without a cached cardinality in what is read afterwards: PFCOUNT does not write here.
    words('PFCOUNT', key, several(key)),
    words('PFMERGE', key, several(key)),
    words('PFDEBUG DECODE', key),
    words('GET', key),
    words('DEL', key),
  ),
);

describe('hostile bytes', () => {
  const header = fc
    .tuple(
      fc.constantFrom('HYLL', 'HYLL', 'HYLX'),
      fc.nat(2),
      fc.uint8Array({ minLength: 11, maxLength: 11 }),
    )
    .map(([magic, encoding, rest]) =>
      Buffer.concat([Buffer.from(magic), Buffer.from([encoding]), rest]),
    );
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.nat(255).map((byte) => Buffer.alloc(12288, byte)),
    fc.nat(255).map((byte) => Buffer.alloc(60_000, byte)),
  );

  test('are an error or a HyperLogLog, and nothing breaks', () => {
    fc.assert(
      fc.property(header, body, (head, rest) => {
        const harness = new Harness(specs);
        harness.command(['SET', 'k', Buffer.concat([head, rest])]);
        for (const line of [
          'PFCOUNT k',
          'PFCOUNT k k',
          'PFADD k a b c',
          'PFMERGE d k',
          'PFDEBUG DECODE k',
        ]) {
          expect(harness.run(line)).toMatch(
            /^(OK|"|\(integer\)|\(error\) (WRONGTYPE|INVALIDOBJ|ERR HLL))/,
          );
        }
      }),
      { numRuns: 300 },
    );
  });

  test('the self test passes', () => {
    expect(new Harness(specs).run('PFSELFTEST')).toBe('OK');
  });
});
