// The transforms of Redis commands by their names, by which a pod in another process finds them.
// Each entry has the properties that a pod needs; the table of commands in access/ has the same,
// and a test compares them.

import { Action, type Transform } from '../../command.ts';

import * as bitfields from './bitfield.ts';
import * as bitmaps from './bitmaps.ts';
import * as databases from './databases.ts';
import * as expiry from './expire.ts';
import * as places from './geo/places.ts';
import * as geoSearch from './geo/search.ts';
import * as hashes from './hash-commands.ts';
import * as hashTimes from './hash-times/commands.ts';
import * as hyperLogLog from './hyperloglog/commands.ts';
import * as hyperLogLogTest from './hyperloglog/self-test.ts';
import * as keySpace from './keys.ts';
import * as listElements from './list-elements.ts';
import * as listEnds from './list-ends.ts';
import * as listMoves from './list-moves.ts';
import * as objects from './object.ts';
import * as dump from './rdb/dump.ts';
import * as restore from './rdb/restore.ts';
import * as scans from './scan.ts';
import * as setAlgebra from './set-algebra.ts';
import * as sets from './set.ts';
import * as slots from './slots.ts';
import * as sorting from './sort.ts';
import * as sortedSetAlgebra from './sorted-set-algebra.ts';
import * as sortedSetPops from './sorted-set-pops.ts';
import * as sortedSetRanges from './sorted-set-ranges.ts';
import * as sortedSet from './sorted-set.ts';
import * as streamClaims from './stream-claims.ts';
import * as streamEntries from './stream-entries.ts';
import * as streamGroups from './stream-groups.ts';
import * as streamInfo from './stream-info.ts';
import * as streamReads from './stream-reads.ts';
import * as stringCounters from './string-counters.ts';
import * as stringLcs from './string-lcs.ts';
import * as stringRanges from './string-ranges.ts';
import * as stringValues from './string-values.ts';

interface NamedTransform {
  /** `set`, or `object|encoding`. */
  readonly name: string;
  readonly run: Transform;
  readonly action: Action;
  /** Number of words; -n is at least n. */
  readonly arity: number;
  /** Refused when memory is at its limit. */
  readonly grows: boolean;
  /** The command uses tables other than its first. */
  readonly usesSpan: boolean;
  /**
   * The command may wait for a key; the number of its arguments is then limited to one step's work.
   */
  readonly waits: boolean;
  readonly isAllowedInScripts: boolean;
}

type Trait = 'grows' | 'span' | 'waits' | 'no-script';

const { fetch, update, put, delete: remove, scan, query } = Action;

function named(
  name: string,
  run: Transform,
  action: Action,
  arity: number,
  ...traits: readonly Trait[]
): NamedTransform {
  return {
    name,
    run,
    action,
    arity,
    grows: traits.includes('grows'),
    usesSpan: traits.includes('span'),
    waits: traits.includes('waits'),
    isAllowedInScripts: !traits.includes('span') && !traits.includes('no-script'),
  };
}

/** In an order that is the same in every process of one build. */
export const namedTransforms: readonly NamedTransform[] = [
  named('bitfield', bitfields.bitfield, update, -2, 'grows'),
  named('bitfield_ro', bitfields.bitfieldRo, fetch, -2),
  named('setbit', bitmaps.setbit, update, 4, 'grows'),
  named('getbit', bitmaps.getbit, fetch, 3),
  named('bitcount', bitmaps.bitcount, query, -2),
  named('bitpos', bitmaps.bitpos, query, -3),
  named('bitop', bitmaps.bitop, update, -4, 'grows'),
  named('copy', databases.copy, update, -3, 'grows', 'span'),
  named('move', databases.move, update, 3, 'span'),
  named('cluster|countkeysinslot', slots.countKeysInSlot, scan, 3, 'no-script'),
  named('cluster|getkeysinslot', slots.getKeysInSlot, scan, 4, 'no-script'),
  named('dbsize', databases.dbsize, fetch, 1),
  named('flushdb', databases.flushdb, remove, -1),
  named('flushall', databases.flushall, remove, -1, 'span'),
  named('swapdb', databases.swapdb, update, 3, 'span'),
  named('expire', expiry.expire, update, -3),
  named('pexpire', expiry.pexpire, update, -3),
  named('expireat', expiry.expireat, update, -3),
  named('pexpireat', expiry.pexpireat, update, -3),
  named('ttl', expiry.ttl, fetch, 2),
  named('pttl', expiry.pttl, fetch, 2),
  named('expiretime', expiry.expiretime, fetch, 2),
  named('pexpiretime', expiry.pexpiretime, fetch, 2),
  named('persist', expiry.persist, update, 2),
  named('geoadd', places.geoadd, update, -5, 'grows'),
  named('geopos', places.geopos, fetch, -2),
  named('geodist', places.geodist, fetch, -4),
  named('geohash', places.geohash, fetch, -2),
  named('geosearch', geoSearch.geosearch, query, -7),
  named('geosearchstore', geoSearch.geosearchstore, update, -8, 'grows'),
  named('georadius', geoSearch.georadius, update, -6, 'grows'),
  named('georadius_ro', geoSearch.georadiusRo, query, -6),
  named('georadiusbymember', geoSearch.georadiusbymember, update, -5, 'grows'),
  named('georadiusbymember_ro', geoSearch.georadiusbymemberRo, query, -5),
  named('hexpire', hashTimes.hexpire, update, -6, 'grows'),
  named('hpexpire', hashTimes.hpexpire, update, -6, 'grows'),
  named('hexpireat', hashTimes.hexpireat, update, -6, 'grows'),
  named('hpexpireat', hashTimes.hpexpireat, update, -6, 'grows'),
  named('httl', hashTimes.httl, fetch, -5),
  named('hpttl', hashTimes.hpttl, fetch, -5),
  named('hexpiretime', hashTimes.hexpiretime, fetch, -5),
  named('hpexpiretime', hashTimes.hpexpiretime, fetch, -5),
  named('hpersist', hashTimes.hpersist, update, -5),
  named('hgetdel', hashTimes.hgetdel, update, -5),
  named('hgetex', hashTimes.hgetex, update, -5),
  named('hsetex', hashTimes.hsetex, update, -6, 'grows'),
  named('hset', hashes.hset, update, -4, 'grows'),
  named('hmset', hashes.hmset, put, -4, 'grows'),
  named('hsetnx', hashes.hsetnx, update, 4, 'grows'),
  named('hget', hashes.hget, fetch, 3),
  named('hmget', hashes.hmget, fetch, -3),
  named('hgetall', hashes.hgetall, fetch, 2),
  named('hkeys', hashes.hkeys, fetch, 2),
  named('hvals', hashes.hvals, fetch, 2),
  named('hlen', hashes.hlen, fetch, 2),
  named('hstrlen', hashes.hstrlen, fetch, 3),
  named('hexists', hashes.hexists, fetch, 3),
  named('hdel', hashes.hdel, remove, -3),
  named('hincrby', hashes.hincrby, update, 4, 'grows'),
  named('hincrbyfloat', hashes.hincrbyfloat, update, 4, 'grows'),
  named('hrandfield', hashes.hrandfield, fetch, -2),
  named('hscan', hashes.hscan, fetch, -3),
  named('pfadd', hyperLogLog.pfadd, update, -2, 'grows'),
  named('pfcount', hyperLogLog.pfcount, query, -2),
  named('pfmerge', hyperLogLog.pfmerge, update, -2, 'grows'),
  named('pfdebug', hyperLogLog.pfdebug, update, 3, 'grows'),
  named('pfselftest', hyperLogLogTest.pfselftest, query, 1),
  named('del', keySpace.del, remove, -2),
  named('unlink', keySpace.del, remove, -2),
  named('exists', keySpace.exists, fetch, -2),
  named('touch', keySpace.exists, fetch, -2),
  named('type', keySpace.type, fetch, 2),
  named('rename', keySpace.rename, update, 3),
  named('renamenx', keySpace.renamenx, update, 3),
  named('wait', keySpace.wait, fetch, 3, 'no-script'),
  named('waitaof', keySpace.waitaof, fetch, 4, 'no-script'),
  named('llen', listElements.llen, fetch, 2),
  named('lindex', listElements.lindex, fetch, 3),
  named('lset', listElements.lset, update, 4, 'grows'),
  named('lrange', listElements.lrange, fetch, 4),
  named('ltrim', listElements.ltrim, remove, 4),
  named('lrem', listElements.lrem, remove, 4),
  named('linsert', listElements.linsert, update, 5, 'grows'),
  named('lpos', listElements.lpos, fetch, -3),
  named('lpush', listEnds.lpush, update, -3, 'grows'),
  named('rpush', listEnds.rpush, update, -3, 'grows'),
  named('lpushx', listEnds.lpushx, update, -3, 'grows'),
  named('rpushx', listEnds.rpushx, update, -3, 'grows'),
  named('lpop', listEnds.lpop, remove, -2),
  named('rpop', listEnds.rpop, remove, -2),
  named('rpoplpush', listMoves.rpoplpush, update, 3, 'grows'),
  named('lmove', listMoves.lmove, update, 5, 'grows'),
  named('lmpop', listMoves.lmpop, remove, -4),
  named('blpop', listMoves.blpop, remove, -3, 'waits', 'no-script'),
  named('brpop', listMoves.brpop, remove, -3, 'waits', 'no-script'),
  named('brpoplpush', listMoves.brpoplpush, update, 4, 'grows', 'waits', 'no-script'),
  named('blmove', listMoves.blmove, update, 6, 'grows', 'waits', 'no-script'),
  named('blmpop', listMoves.blmpop, remove, -5, 'waits'),
  named('object|encoding', objects.objectEncoding, fetch, 3),
  named('object|freq', objects.objectFreq, fetch, 3),
  named('object|idletime', objects.objectIdletime, fetch, 3),
  named('object|refcount', objects.objectRefcount, fetch, 3),
  named('memory|malloc-stats', objects.memoryMallocStats, fetch, 2),
  named('memory|purge', objects.memoryPurge, fetch, 2),
  named('memory|usage', objects.memoryUsage, fetch, -3),
  named('dump', dump.dump, query, 2),
  named('restore', restore.restore, update, -4, 'grows'),
  named('keys', scans.keys, scan, 2),
  named('scan', scans.scan, scan, -2),
  named('randomkey', scans.randomkey, scan, 1),
  named('sinter', setAlgebra.sinter, query, -2),
  named('sinterstore', setAlgebra.sinterstore, update, -3, 'grows'),
  named('sintercard', setAlgebra.sintercard, query, -3),
  named('sunion', setAlgebra.sunion, query, -2),
  named('sunionstore', setAlgebra.sunionstore, update, -3, 'grows'),
  named('sdiff', setAlgebra.sdiff, query, -2),
  named('sdiffstore', setAlgebra.sdiffstore, update, -3, 'grows'),
  named('sadd', sets.sadd, update, -3, 'grows'),
  named('srem', sets.srem, remove, -3),
  named('sismember', sets.sismember, fetch, 3),
  named('smismember', sets.smismember, fetch, -3),
  named('smembers', sets.smembers, fetch, 2),
  named('scard', sets.scard, fetch, 2),
  named('spop', sets.spop, update, -2),
  named('srandmember', sets.srandmember, fetch, -2),
  named('smove', sets.smove, update, 4),
  named('sscan', sets.sscan, fetch, -3),
  named('sort', sorting.sort, update, -2, 'grows'),
  named('sort_ro', sorting.sortRo, query, -2),
  named('zunion', sortedSetAlgebra.zunion, query, -3),
  named('zinter', sortedSetAlgebra.zinter, query, -3),
  named('zdiff', sortedSetAlgebra.zdiff, query, -3),
  named('zunionstore', sortedSetAlgebra.zunionstore, update, -4, 'grows'),
  named('zinterstore', sortedSetAlgebra.zinterstore, update, -4, 'grows'),
  named('zdiffstore', sortedSetAlgebra.zdiffstore, update, -4, 'grows'),
  named('zintercard', sortedSetAlgebra.zintercard, query, -3),
  named('zpopmin', sortedSetPops.zpopmin, update, -2),
  named('zpopmax', sortedSetPops.zpopmax, update, -2),
  named('zmpop', sortedSetPops.zmpop, update, -4),
  named('bzpopmin', sortedSetPops.bzpopmin, update, -3, 'waits', 'no-script'),
  named('bzpopmax', sortedSetPops.bzpopmax, update, -3, 'waits', 'no-script'),
  named('bzmpop', sortedSetPops.bzmpop, update, -5, 'waits'),
  named('zcount', sortedSetRanges.zcount, fetch, 4),
  named('zlexcount', sortedSetRanges.zlexcount, fetch, 4),
  named('zrange', sortedSetRanges.zrange, fetch, -4),
  named('zrevrange', sortedSetRanges.zrevrange, fetch, -4),
  named('zrangebyscore', sortedSetRanges.zrangebyscore, fetch, -4),
  named('zrevrangebyscore', sortedSetRanges.zrevrangebyscore, fetch, -4),
  named('zrangebylex', sortedSetRanges.zrangebylex, fetch, -4),
  named('zrevrangebylex', sortedSetRanges.zrevrangebylex, fetch, -4),
  named('zrangestore', sortedSetRanges.zrangestore, update, -5, 'grows'),
  named('zremrangebyrank', sortedSetRanges.zremrangebyrank, remove, 4),
  named('zremrangebyscore', sortedSetRanges.zremrangebyscore, remove, 4),
  named('zremrangebylex', sortedSetRanges.zremrangebylex, remove, 4),
  named('zadd', sortedSet.zadd, update, -4, 'grows'),
  named('zincrby', sortedSet.zincrby, update, 4, 'grows'),
  named('zrem', sortedSet.zrem, remove, -3),
  named('zscore', sortedSet.zscore, fetch, 3),
  named('zmscore', sortedSet.zmscore, fetch, -3),
  named('zcard', sortedSet.zcard, fetch, 2),
  named('zrank', sortedSet.zrank, fetch, 3),
  named('zrevrank', sortedSet.zrevrank, fetch, 3),
  named('zrandmember', sortedSet.zrandmember, fetch, -2),
  named('zscan', sortedSet.zscan, fetch, -3),
  named('xclaim', streamClaims.xclaim, update, -6),
  named('xautoclaim', streamClaims.xautoclaim, update, -6),
  named('xadd', streamEntries.xadd, update, -5, 'grows'),
  named('xlen', streamEntries.xlen, fetch, 2),
  named('xrange', streamEntries.xrange, query, -4),
  named('xrevrange', streamEntries.xrevrange, query, -4),
  named('xdel', streamEntries.xdel, update, -3),
  named('xtrim', streamEntries.xtrim, update, -4),
  named('xsetid', streamEntries.xsetid, update, -3, 'grows'),
  named('xack', streamGroups.xack, update, -4),
  named('xpending', streamGroups.xpending, query, -3),
  named('xgroup|create', streamGroups.xgroupCreate, update, -5, 'grows'),
  named('xgroup|setid', streamGroups.xgroupSetid, update, -5),
  named('xgroup|destroy', streamGroups.xgroupDestroy, update, 4),
  named('xgroup|createconsumer', streamGroups.xgroupCreateConsumer, update, 5, 'grows'),
  named('xgroup|delconsumer', streamGroups.xgroupDelConsumer, update, 5),
  named('xinfo|consumers', streamInfo.xinfoConsumers, query, 4),
  named('xinfo|groups', streamInfo.xinfoGroups, query, 3),
  named('xinfo|stream', streamInfo.xinfoStream, query, -3),
  named('xread', streamReads.xread, query, -4, 'waits'),
  named('xreadgroup', streamReads.xreadgroup, update, -7, 'waits'),
  named('incr', stringCounters.incr, update, 2, 'grows'),
  named('decr', stringCounters.decr, update, 2, 'grows'),
  named('incrby', stringCounters.incrby, update, 3, 'grows'),
  named('decrby', stringCounters.decrby, update, 3, 'grows'),
  named('incrbyfloat', stringCounters.incrbyfloat, update, 3, 'grows'),
  named('lcs', stringLcs.lcs, query, -3),
  named('append', stringRanges.append, update, 3, 'grows'),
  named('getrange', stringRanges.getrange, fetch, 4),
  named('substr', stringRanges.getrange, fetch, 4),
  named('setrange', stringRanges.setrange, update, 4, 'grows'),
  named('get', stringValues.get, fetch, 2),
  named('set', stringValues.set, put, -3, 'grows'),
  named('setnx', stringValues.setnx, update, 3, 'grows'),
  named('setex', stringValues.setex, put, 4, 'grows'),
  named('psetex', stringValues.psetex, put, 4, 'grows'),
  named('getset', stringValues.getset, update, 3, 'grows'),
  named('getdel', stringValues.getdel, remove, 2),
  named('getex', stringValues.getex, update, -2),
  named('mget', stringValues.mget, fetch, -2),
  named('mset', stringValues.mset, put, -3, 'grows'),
  named('msetnx', stringValues.msetnx, update, -3, 'grows'),
  named('strlen', stringValues.strlen, fetch, 2),
];

const byName = new Map(namedTransforms.map((one) => [one.name, one]));

export function transformNamed(name: string): NamedTransform | undefined {
  return byName.get(name);
}
