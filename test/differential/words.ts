// The words commands are made of: few keys, so that commands meet, each mostly of its own type; values and
// numbers of every kind, the odd ones among them.

import type { Random } from '../support/random.ts';
import type { Word } from '../support/resp-client.ts';
import type { Kind, LineState } from './grammar.ts';

const types = ['string', 'hash', 'list', 'set', 'zset'] as const;
const keysPerType = 7;

function keyOf(type: string, index: number): Word {
  if (index === 0) return Buffer.from(`${type}\0\r\n\xff{`, 'latin1');
  if (index === 1) return `{tag}${type}`;
  return `${type}${index}`;
}

function anyKey(random: Random): Word {
  if (random.chance(0.05)) return random.pick(['missing', '', 'missing2']);
  return keyOf(random.pick(types), random.below(keysPerType));
}

function key(type: string): Kind {
  return (random) =>
    random.chance(0.96) ? keyOf(type, random.below(keysPerType)) : anyKey(random);
}

/** A count and as many keys, seldom another number of them. */
function countedKeys(type: string): Kind {
  const one = key(type);
  return (random: Random, line: LineState) => {
    const count = 1 + random.below(3);
    line.keyCount = count;
    const keys = Array.from({ length: count }, () => one(random, line) as Word);
    const said = random.chance(0.97) ? count : random.pick(['0', '-1', count + 1, 'x', 100]);
    return [String(said), ...keys];
  };
}

export const oddNumbers: readonly string[] = [
  '9223372036854775807',
  '9223372036854775808',
  '-9223372036854775808',
  '-9223372036854775809',
  '18446744073709551615',
  '2147483647',
  '2147483648',
  '-2147483648',
  '4294967296',
  '00',
  '01',
  '-0',
  '+1',
  ' 1',
  '1 ',
  '',
  '-',
  '1e3',
  '0x10',
  '1.5',
  '1.0',
  'nan',
  'inf',
  '-inf',
  '+inf',
  'Infinity',
  '1e400',
  '1e-400',
  '1_000',
  'abc',
];

const longText = 'x'.repeat(100);
const members: readonly Word[] = [
  ...[
    'a',
    'b',
    'c',
    'd',
    'e',
    'f',
    'g',
    'aa',
    'ab',
    'B',
    'z',
    '',
    '1',
    '2',
    '3',
    '10',
    '-5',
    '007',
  ],
  ...['9223372036854775807', '1.5', 'foo bar', `${longText}1`, `${longText}2`],
  Buffer.from('n\0\r\n\xfe', 'latin1'),
  Buffer.from('\xff', 'latin1'),
];
const values: readonly Word[] = [
  ...members,
  ...oddNumbers,
  ...[
    '0',
    '5',
    '100',
    '3.25',
    '-7.125',
    '3.0e2',
    '12345678901234567',
    '0.1',
    '1e17',
    'hello world',
  ],
  ...['y'.repeat(44), 'y'.repeat(45), 'mumble'.repeat(300)],
];

const member: Kind = (random) =>
  random.chance(0.9) ? random.pick(members) : `member:${random.below(600)}`;
const value: Kind = (random) => {
  if (random.chance(0.01)) return 'v'.repeat(random.below(6000));
  return random.pick(values);
};

function mostly(usual: (random: Random) => Word, odd: readonly string[] = oddNumbers): Kind {
  return (random) => (random.chance(0.94) ? usual(random) : random.pick(odd));
}

const integer = mostly((random) => random.below(21) - 10);
const index = mostly((random) => random.below(24) - 12);
const count = mostly((random) => random.below(6));
/** For replies of that many elements: never very negative. */
const draw: Kind = (random) =>
  random.chance(0.94)
    ? random.below(16) - 8
    : random.pick(['9223372036854775807', '-9223372036854775808', '100', '-30', 'x', '', '1.5']);
const float = mostly((random) =>
  random.pick(['0.1', '1', '-1', '2.5', '1e2', '3.14159', '-0.0001', '1e-7', '100000000', '0.3']),
);
const score = mostly((random) =>
  random.chance(0.7)
    ? random.below(12) - 3
    : random.pick(['0.5', '-0.25', '1e3', '-inf', 'inf', '0.1', '1e17', '1.7976931348623157e308']),
);
const weight = mostly((random) => random.pick(['1', '2', '-1', '0.5', '0', '3']));
const scoreBound = mostly(
  (random) =>
    `${random.chance(0.3) ? '(' : ''}${random.pick(['-inf', '+inf', '0', '1', '5', '-3', '2.5'])}`,
  [...oddNumbers, '[1', '((1', '(', '(nan'],
);
const lexBound = mostly(
  (random) =>
    random.pick(['-', '+', '[a', '(a', '[b', '(c', '[', '(', '[aa', '[1', '(z', '[\u00ff']),
  ['a', '', '-a', '+1', '1'],
);
const cursor = mostly(() => '0', ['00', 'x', '18446744073709551616', '']);
const pattern: Kind = (random) =>
  random.pick([
    ...['*', 's*', '*1', '?', '??', '[a-f]*', '[^a]*', '\\*', 'a', '*[', 'h?sh*', '{tag}*', ''],
    ...['m*r:[1-3]*', '[z-a]', '**', '*a*b*', '[', '[a', '\\', 'x*y*'],
  ]);

/** Far from now and from each other, so that which is greater does not depend on the moment. */
const seconds = mostly(
  (random) => 10_000 + random.below(10_000_000),
  [
    '0',
    '-1',
    '1.5',
    'x',
    '',
    '9223372036854775807',
    '9223372036854775',
    '-9223372036854775808',
    '9223372036854775808',
  ],
);
const milliseconds = mostly(
  (random) => 10_000_000 + random.below(2_000_000_000),
  ['0', '-1', 'x', '', '9223372036854775807', '-9223372036854775808', '9223372036854775808'],
);
const clockSeconds = mostly(
  (random) => (random.chance(0.1) ? random.below(1000) : 4_000_000_000 + random.below(1_000_000)),
  ['0', '-1', 'x', '9223372036854775807', '9223372036854775', '9223372036854775808'],
);
const clockMilliseconds = mostly(
  (random) => (random.chance(0.1) ? random.below(1000) : 4e12 + random.below(1_000_000_000)),
  ['0', '-1', 'x', '9223372036854775807', '9223372036854775808'],
);

const degrees = (most: number): Kind =>
  mostly((random) => ((random.below(2_000_001) / 1_000_000 - 1) * most).toFixed(random.below(7)));
const longitude = degrees(180);
const latitude = degrees(86);
const placeName: Kind = (random) => `place${random.below(40)}`;
const distance = mostly((random) => random.pick(['0', '1', '100', '7000', '25000', '0.5', '-1']));

const streamId = mostly(
  (random) => {
    const ms = random.below(40);
    const kind = random.below(10);
    if (kind < 2) return `${ms}`;
    return kind === 2 ? `${ms}-*` : `${ms}-${random.below(4)}`;
  },
  ['0', '$', '-', '+', 'x', '', '1-', '-1', '1-2-3', '18446744073709551615', '9999999999-1'],
);
const groupId = mostly((random) => (random.chance(0.7) ? '>' : `${random.below(20)}`), ['$', 'x']);

export const kinds = {
  any: anyKey,
  string: key('string'),
  hash: key('hash'),
  list: key('list'),
  set: key('set'),
  zset: key('zset'),
  /** Sorted sets whose members all have score 0, the only ones of which BYLEX says anything. */
  flat: (random) => keyOf('flat', random.below(3)),
  sets: countedKeys('set'),
  lists: countedKeys('list'),
  zsets: (random, line) => countedKeys(random.chance(0.85) ? 'zset' : 'set')(random, line),
  member,
  field: member,
  value,
  integer,
  index,
  count,
  draw,
  float,
  score,
  weights: (random, line) => {
    const words = line.keyCount + (random.chance(0.95) ? 0 : random.below(3) - 1);
    return Array.from({ length: words }, () => weight(random, line) as Word);
  },
  scorebound: scoreBound,
  lexbound: lexBound,
  cursor,
  pattern,
  seconds,
  milliseconds,
  clockseconds: clockSeconds,
  clockmilliseconds: clockMilliseconds,
  offset: mostly(
    (random) => random.below(60),
    [...oddNumbers.filter((n) => n !== ''), '536870911x'],
  ),
  stream: (random) => keyOf('stream', random.below(3)),
  streamid: streamId,
  streambound: (random, line) =>
    random.chance(0.4) ? random.pick(['-', '+', '(3', '(5-1', '(-', '(']) : streamId(random, line),
  group: (random) => `group${random.below(3)}`,
  groupid: groupId,
  consumer: (random) => `consumer${random.below(3)}`,
  few: (random) => random.below(12),
  sketch: (random) => keyOf('sketch', random.below(4)),
  geo: (random) => keyOf('geo', random.below(4)),
  placename: placeName,
  position: (random, line) => [longitude(random, line), latitude(random, line)].flat() as Word[],
  place: (random, line) =>
    [longitude(random, line), latitude(random, line), placeName(random, line)].flat() as Word[],
  width: distance,
  radius: (random, line) => [
    distance(random, line) as Word,
    random.pick(['m', 'km', 'KM', 'km', 'ft', 'mi', 'x']),
  ],
  bitoffset: mostly((random) => random.below(600), [...oddNumbers, '#1', '#7', '4294967296', '#']),
  fieldtype: mostly(
    (random) => `${random.pick(['i', 'u'])}${1 + random.below(63)}`,
    ['i64', 'u64', 'i0', 'u', '', 'x8', 'i65', 'u-1'],
  ),
  db: mostly((random) => random.below(3), ['-1', '15', '16', 'x', '', '9223372036854775808']),
  // Long enough to be a wait, short enough not to slow the run.
  timeout: mostly(() => '0.005', ['-1', 'x', '', 'nan', '-0.1', '1e400', '9223372036854775807']),
  // Not `none`: of keys that have just expired, redis-server tells as of such.
  type: (random) => random.pick(['string', 'hash', 'list', 'set', 'zset', 'ZSET', 'stream', 'x']),
  nowhere: () => 'missing*',
  by: (random) => random.pick(['string*', 'hash*->a', 'missing*', '*', 'hash*->']),
  got: (random) =>
    random.pick(['#', 'string*', 'hash*->a', 'hash*->b', 'missing*', '*', 'x', 'list*']),
} satisfies Record<string, Kind>;
