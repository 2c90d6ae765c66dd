// Access of a command to each of its keys: ACL rules may allow reading some keys (`%R~`) and
// writing others (`%W~`). A check of a key's existence or size is neither: any right to the key
// suffices.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { keyWords } from '../commands/key-words.ts';
import type { CommandSpec } from '../commands/spec.ts';

export const Access = { none: 0, read: 1, write: 2, both: 3 } as const;
export type Access = (typeof Access)[keyof typeof Access];

const { none, read, write, both } = Access;

/** Access to the first key, and to those after it. */
type Rule = readonly [first: Access, rest: Access];

function all(names: string, ...[first, rest = first]: Access[]): [string, Rule][] {
  return names.split(' ').map((name) => [name, [first!, rest!]]);
}

// Where it is not reading for a command that only reads, and writing for one that writes.
const exceptions = new Map<string, Rule>([
  ...all('exists touch type strlen hlen hstrlen hexists llen sismember scard zcard watch', none),
  ...all('object|encoding object|freq object|idletime object|refcount memory|usage', none),
  ...all('getset getdel getex incr decr incrby decrby incrbyfloat move', both),
  ...all('hincrby hincrbyfloat zincrby', both),
  ...all('lpop rpop lmpop blpop brpop blmpop spop', both),
  ...all('zpopmin zpopmax zmpop bzpopmin bzpopmax bzmpop', both),
  ...all('rpoplpush lmove brpoplpush blmove smove rename renamenx', both, write),
  ...all('setbit bitfield', both),
  ...all('pfmerge', both, read),
  ...all('pfcount pfdebug', read),
  ...all('copy sort georadius georadiusbymember', read, write),
  ...all('bitop geosearchstore', write, read),
  ...all('sinterstore sunionstore sdiffstore', write, read),
  ...all('zrangestore zunionstore zinterstore zdiffstore', write, read),
]);

/** A command as its ACL checks need it. */
interface KeyedCommand {
  readonly fullName: string;
  readonly spec: CommandSpec;
}

export function accessOf(entry: KeyedCommand): Rule {
  const exception = exceptions.get(entry.fullName);
  if (exception !== undefined) return exception;
  const usual = entry.spec.flags.includes('write') ? write : read;
  return [usual, usual];
}

/** Calls back with each key's word and access until one answer is false; says whether none was. */
export function everyKey(
  entry: KeyedCommand & { readonly keyAccess: Rule },
  args: Arguments,
  visit: (word: number, access: Access) => boolean,
): boolean {
  const words = keyWords(entry.spec, args);
  const [first, rest] = entry.keyAccess;
  for (let i = 0; i < words.length; i++) {
    let access = i === 0 ? first : rest;
    if (entry.fullName === 'set' && setReads(args)) access = both;
    if (entry.fullName === 'bitfield' && !fieldsAreSet(args)) access = read;
    if (!visit(words[i]!, access)) return false;
  }
  return true;
}

/** SET with GET returns the old value. */
function setReads(args: Arguments): boolean {
  for (let i = 3; i < args.count; i++) if (args.is(i, 'GET')) return true;
  return false;
}

/** BITFIELD only reads when all of its operations are GET. */
function fieldsAreSet(args: Arguments): boolean {
  for (let i = 2; i < args.count; i++) if (args.is(i, 'SET') || args.is(i, 'INCRBY')) return true;
  return false;
}
