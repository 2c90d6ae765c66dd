// Flags of a command's keys, for COMMAND GETKEYSANDFLAGS: how the value is accessed (RO, RW, OW
// overwrites, RM removes), and whether its content is read, changed, added to or taken away.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { isWrite } from '../../../universal-row/command.ts';
import type { CommandEntry } from './registry.ts';

const reads = ['RO', 'access'];
const looks = ['RO'];
const updates = ['RW', 'update'];
const readsAndUpdates = ['RW', 'access', 'update'];
const takes = ['RW', 'access', 'delete'];
const deletes = ['RW', 'delete'];
const inserts = ['RW', 'insert'];
const overwrites = ['OW', 'update'];
const creates = ['OW', 'insert'];
const removes = ['RM', 'delete'];

/** Flags of the first key, the second and so on: the last entry applies to all that follow. */
type KeyFlags = readonly (readonly string[])[];

const flagsOf = new Map<string, KeyFlags>();

function add(words: string, ...keys: KeyFlags): void {
  for (const name of words.split(' ')) flagsOf.set(name, keys);
}

// Others read their keys, or read and update them, as their action says.
add('exists hexists hlen hstrlen llen memory|usage object|encoding object|freq', looks);
add('object|idletime object|refcount scard sismember strlen touch type watch xlen zcard', looks);
add('decr decrby eval evalsha fcall getex getset hincrby hincrbyfloat incr', readsAndUpdates);
add('incrby incrbyfloat move setbit zincrby hgetex', readsAndUpdates);
add('blmpop blpop brpop bzmpop bzpopmax bzpopmin getdel hgetdel lmpop lpop rpop spop', takes);
add('zmpop zpopmax zpopmin migrate', takes);
add('hdel lrem ltrim srem xautoclaim xdel xgroup|delconsumer xgroup|destroy xtrim', deletes);
add('zrem zremrangebylex zremrangebyrank zremrangebyscore', deletes);
add('append hsetnx linsert lpush lpushx pfadd rpush rpushx sadd', inserts);
add('xgroup|create xgroup|createconsumer', inserts);
add('bitop geosearchstore sdiffstore sunionstore zdiffstore', overwrites, reads);
add('zinterstore zrangestore zunionstore', overwrites, reads);
add('blmove brpoplpush lmove rpoplpush smove', takes, inserts);
add('mset psetex restore setex set', overwrites);
add('del unlink', removes);
add('georadius georadiusbymember copy sort', reads, overwrites);
add('msetnx setnx', creates);
add('pfcount pfdebug', ['RW', 'access']);
add('xreadgroup', reads);
add('pfmerge', ['RW', 'access', 'insert'], reads);
add('rename', takes, overwrites);
add('renamenx', takes, creates);
add('sinterstore', updates, reads);

function has(args: Arguments, word: string): boolean {
  for (let i = 2; i < args.count; i++) if (args.is(i, word)) return true;
  return false;
}

/** Flags of the key with this number, from 0. */
export function keyFlags(entry: CommandEntry, args: Arguments, key: number): readonly string[] {
  const { fullName } = entry;
  if (fullName === 'set' && has(args, 'GET')) return readsAndUpdates;
  if (fullName === 'bitfield') {
    return has(args, 'SET') || has(args, 'INCRBY') ? readsAndUpdates : reads;
  }
  const flags = flagsOf.get(fullName);
  if (flags === undefined) return isWrite(entry.action) ? updates : reads;
  return flags[Math.min(key, flags.length - 1)]!;
}
