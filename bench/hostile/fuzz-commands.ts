// Redis commands run by a pod on rows of each shape, in process: the cost of a command without that
// of reading it.

import { allCommands } from '../../access/redis/commands/all.ts';
import { type CommandEntry, CommandRegistry } from '../../access/redis/commands/registry.ts';
import { RespWriter } from '../../access/redis/resp-writer.ts';
import { PodFixture } from '../../storage-node/pod-fixture.ts';
import { Arguments } from '../../universal-row/arguments.ts';
import type { Rng } from '../../universal-row/environment.ts';
import { below, digitText, globText, nameText, oneOf } from './fuzz-texts.ts';

const registry = new CommandRegistry(allCommands);
/** Commands about rows that need no client; those about all rows would leave nothing to fuzz. */
const entries = [...registry.all()].filter(
  ({ run, bind, everyPod, blocks, usesSpan }) =>
    run !== undefined && bind === undefined && !everyPod && blocks === undefined && !usesSpan,
);
const span = { first: 0, count: 1 };
const rowElements = 300;
/** Between two times that the rows are as they were at first. */
const commandsBetweenFills = 200;
const separator = '\x1f';
const keys = ['string', 'list', 'set', 'hash', 'ranked', 'stream', 'none', 'member-1', 'field-1'];
const options = [
  ...[
    'NX',
    'XX',
    'GET',
    'EX',
    'PX',
    'WITHSCORES',
    'WITHVALUES',
    'COUNT',
    'MATCH',
    'LIMIT',
    'BYSCORE',
  ],
  ...[
    'REV',
    'ALPHA',
    'DESC',
    'STORE',
    'WEIGHTS',
    'AGGREGATE',
    'SUM',
    'RANK',
    'MAXLEN',
    'BEFORE',
    'LEFT',
  ],
  ...[
    '(1',
    '[a',
    '-',
    '+',
    '-inf',
    '+inf',
    'u8',
    'i64',
    '#1',
    'OVERFLOW',
    'SAT',
    'AND',
    'XOR',
    'IDX',
    '1-1',
    '$',
    '>',
    'GROUP',
    'STREAMS',
    'FROMMEMBER',
    'BYRADIUS',
    'km',
  ],
];

export function commandText(rng: Rng, length: number): string {
  const { spec, fullName } = oneOf(rng, entries);
  const words = fullName.split('|');
  const least = Math.abs(spec.arity);
  const most = spec.arity > 0 ? spec.arity : Math.max(least, Math.ceil(length / 8));
  while (words.length < least || (words.length < most && rng.next() < 0.98)) {
    words.push(wordOf(rng, length));
  }
  return words.join(separator);
}

function wordOf(rng: Rng, length: number): string {
  switch (below(rng, 9)) {
    case 0:
      return String(below(rng, 2 * rowElements) - rowElements);
    case 1:
      return oneOf(rng, options);
    case 2:
      return String((rng.next() - 0.5) * 1e6);
    case 3:
      return rng.next() < 0.1 ? globText(rng, length >> 2) : nameText(rng, 8);
    case 8:
      return rng.next() < 0.1 ? digitText(rng, length) : '0';
    case 4:
      return `member-${below(rng, rowElements)}`;
    default:
      return oneOf(rng, keys);
  }
}

const fixture = await PodFixture.open();
const reply = new RespWriter();
const args = new Arguments();
let run = 0;

export function runCommand(text: string): void {
  if (run++ % commandsBetweenFills === 0) fill();
  execute(text.split(separator));
  fixture.pod.endTick();
  const fault = fixture.reports.pop();
  if (fault !== undefined) throw new Error(fault);
}

function fill(): void {
  execute(['DEL', ...keys]);
  execute(['SET', 'string', 'v'.repeat(1000)]);
  const numbers = Array.from({ length: rowElements }, (_, n) => n);
  execute(['RPUSH', 'list', ...numbers.map((n) => `member-${n}`)]);
  execute(['SADD', 'set', ...numbers.map((n) => `member-${n}`)]);
  execute(['HSET', 'hash', ...numbers.flatMap((n) => [`field-${n}`, String(n)])]);
  execute(['ZADD', 'ranked', ...numbers.flatMap((n) => [String(n), `member-${n}`])]);
  for (const n of numbers) execute(['XADD', 'stream', `${n + 1}-1`, `field-${n}`, String(n)]);
  execute(['XGROUP', 'CREATE', 'stream', 'member-1', '0']);
}

function execute(words: readonly string[]): void {
  set(words);
  const entry = entryOf();
  if (entry?.run === undefined || !entry.takes(args.count)) return;
  reply.pos = 0;
  const { action, fullName: name, grows } = entry;
  const command = { action, name, transform: entry.run, grows, table: 0, span, args };
  // Work in steps runs later; only its immediate cost is of interest.
  void fixture.pod.execute(command, reply);
}

function set(words: readonly string[]): void {
  const buf = Buffer.from(words.join(''), 'latin1');
  args.reserve(words.length);
  args.buf = buf;
  args.count = words.length;
  let at = 0;
  words.forEach((word, i) => {
    args.starts[i] = at;
    args.lens[i] = word.length;
    at += word.length;
  });
}

function entryOf(): CommandEntry | undefined {
  const entry = registry.lookup(args);
  if (entry?.subcommands === undefined || args.count < 2) return entry;
  return entry.subcommands.get(args.latin1(1).toLowerCase());
}
