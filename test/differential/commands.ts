// Every command of strings, hashes, lists, sets, sorted sets, keys and expiry, with all its options, and
// how its answers are compared.

import { Pattern } from './grammar.ts';
import type { Rule } from './rules.ts';
import { kinds } from './words.ts';

export interface Line {
  pattern: Pattern;
  rule: Rule;
  /** Waits for data. */
  waits: boolean;
}

/** A random answer: what it may pick from, the pick, and what brings both servers in step again. */
export interface Draw {
  candidates: string;
  draw: Pattern;
  /** Whether the pick is taken away. */
  removes: boolean;
}

const exact = `
SET string value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT clockseconds|PXAT clockmilliseconds|KEEPTTL]
SET <string|any> value
SET string value <NX|XX|GET|EX|PX|KEEPTTL|EX seconds|PX milliseconds|BAD>*
SETNX string value
SETEX string seconds value
PSETEX string milliseconds value
GET <string|any>
GETSET string value
GETDEL string
GETEX string [EX seconds|PX milliseconds|EXAT clockseconds|PXAT clockmilliseconds|PERSIST|PERSIST PERSIST]
MGET <string|any>*
MSET <string value>*
MSETNX <string value>*
APPEND string value
STRLEN string
INCR string
DECR string
INCRBY string integer
DECRBY string integer
INCRBYFLOAT string float
GETRANGE string index index
SUBSTR string index index
SETRANGE string offset value
SETBIT string bitoffset <0|1>
SETBIT string bitoffset integer
GETBIT string bitoffset
BITCOUNT string
BITCOUNT string index index [BYTE|BIT]
BITCOUNT string <index|BAD>*
BITPOS string <0|1> [index|index index|index index BIT|index index BYTE]
BITPOS string integer <index|BAD>*
BITOP <AND|OR|XOR|NOT|BAD> <string|any> string*
BITFIELD string <GET fieldtype bitoffset|SET fieldtype bitoffset integer|INCRBY fieldtype bitoffset integer|OVERFLOW <WRAP|SAT|FAIL|BAD>|BAD>*
BITFIELD_RO string <GET fieldtype bitoffset|SET fieldtype bitoffset integer>*
PFADD sketch member**
PFADD <sketch|string> value*
PFCOUNT sketch sketch*
PFCOUNT <sketch|any> any*
PFMERGE sketch sketch*
PFDEBUG <ENCODING|DECODE|TODENSE|GETREG|BAD> sketch
GEOADD geo [NX|XX] [CH] place*
GEOADD <geo|zset> place**
GEOPOS <geo|zset> placename placename*
GEODIST geo placename placename [M|KM|FT|MI|BAD]
GEOHASH <geo|zset> placename*
GEOSEARCH <geo|zset> <FROMMEMBER placename|FROMLONLAT position> <BYRADIUS radius|BYBOX width radius> [ASC|DESC] [WITHDIST] [WITHCOORD] [WITHHASH]
GEOSEARCHSTORE geo geo <FROMMEMBER placename|FROMLONLAT position> <BYRADIUS radius|BYBOX width radius> [ASC|DESC]
GEOSEARCH geo <FROMMEMBER placename|FROMLONLAT position|BYRADIUS radius|BYBOX width radius|ANY|COUNT count|STOREDIST|WITHDIST|BAD>*
GEORADIUS geo position radius [WITHCOORD] [ASC|DESC] [WITHDIST]
GEORADIUS geo position radius <STORE geo|STOREDIST>
GEORADIUS_RO geo position radius [STORE geo] [WITHHASH]
GEORADIUSBYMEMBER geo placename radius [WITHHASH|STORE geo]
GEORADIUSBYMEMBER_RO geo placename radius [STOREDIST geo]
LCS string string [LEN] [IDX] [MINMATCHLEN count] [WITHMATCHLEN]

HSET hash <field value>**
HSET hash <field value>*
HMSET hash <field value>*
HSETNX hash field value
HGET hash field
HMGET hash field*
HDEL hash field*
HEXISTS hash field
HLEN hash
HSTRLEN hash field
HINCRBY hash field integer
HINCRBYFLOAT hash field float

LPUSH list value**
RPUSH list value**
LPUSHX list value*
RPUSHX list value*
LPOP list [count]
RPOP list [count]
LLEN list
LINDEX list index
LRANGE list index index
LRANGE list index index
LSET list index value
LINSERT list <BEFORE|AFTER> value value
LREM list integer value
LTRIM list index index
LPOS list value [RANK integer] [COUNT count] [MAXLEN count]
LMOVE list list <LEFT|RIGHT> <LEFT|RIGHT>
RPOPLPUSH list list
LMPOP lists <LEFT|RIGHT> [COUNT count]

SADD set member**
SREM set member*
SCARD set
SISMEMBER set member
SMISMEMBER set member*
SMOVE set set member
SINTERCARD sets [LIMIT count]
SINTERSTORE <set|any> set*
SUNIONSTORE <set|any> set*
SDIFFSTORE <set|any> set*

ZADD zset <score member>**
ZADD zset [NX|XX] [GT|LT] [CH] <score member>*
ZADD zset [CH] [INCR] <score member>
ZINCRBY zset score member
ZCARD zset
ZSCORE zset member
ZMSCORE zset member*
ZRANK zset member
ZREVRANK zset member
ZCOUNT zset scorebound scorebound
ZLEXCOUNT flat lexbound lexbound
ZRANGE zset index index [REV] [WITHSCORES]
ZRANGE zset scorebound scorebound BYSCORE [REV] [LIMIT integer integer] [WITHSCORES]
ZRANGE flat lexbound lexbound BYLEX [REV] [LIMIT integer integer]
ZRANGE flat lexbound lexbound <BYLEX|BYSCORE|LIMIT integer integer|REV|WITHSCORES|BAD>*
ZREVRANGE zset index index [WITHSCORES]
ZRANGEBYSCORE zset scorebound scorebound [WITHSCORES] [LIMIT integer integer]
ZREVRANGEBYSCORE zset scorebound scorebound [WITHSCORES] [LIMIT integer integer]
ZRANGEBYLEX flat lexbound lexbound [LIMIT integer integer]
ZREVRANGEBYLEX flat lexbound lexbound [LIMIT integer integer]
ZRANGESTORE <zset|any> zset index index [REV]
ZRANGESTORE <zset|any> zset scorebound scorebound BYSCORE [REV] [LIMIT integer integer]
ZRANGESTORE <zset|any> flat lexbound lexbound BYLEX [REV] [LIMIT integer integer]
ZREM zset member*
ZREMRANGEBYRANK zset index index
ZREMRANGEBYSCORE zset scorebound scorebound
ZREMRANGEBYLEX flat lexbound lexbound
ZADD flat <0 member>**
ZREM flat member*
ZPOPMIN zset [count]
ZPOPMAX zset [count]
ZMPOP zsets <MIN|MAX> [COUNT count]
ZUNION zsets [WEIGHTS weights] [AGGREGATE <SUM|MIN|MAX|BAD>] [WITHSCORES]
ZINTER zsets [WEIGHTS weights] [AGGREGATE <SUM|MIN|MAX|BAD>] [WITHSCORES]
ZUNIONSTORE <zset|any> zsets [WEIGHTS weights] [AGGREGATE <SUM|MIN|MAX|BAD>]
ZINTERSTORE <zset|any> zsets [WEIGHTS weights] [AGGREGATE <SUM|MIN|MAX|BAD>]
ZDIFF zsets [WITHSCORES]
ZDIFFSTORE <zset|any> zsets
ZINTERCARD zsets [LIMIT count]

DEL any*
UNLINK any*
EXISTS any*
TOUCH any*
TYPE any
RENAME any any
RENAMENX any any
COPY any any [DB db] [REPLACE]
MOVE any db
DBSIZE
SORT <list|set|zset|any> [BY nowhere] [LIMIT integer integer] [GET got]
SORT list [LIMIT integer integer] [GET got] [DESC] [STORE list]
SORT list ALPHA [LIMIT integer integer] [GET got] [ASC|DESC] [STORE list]
SORT <set|zset> ALPHA [LIMIT integer integer] [GET got] [GET got] [DESC] [STORE list]
SORT_RO list [LIMIT integer integer] [GET got] [ALPHA] [DESC]
SORT list <BY by|GET got|LIMIT integer|DESC|BAD>*
OBJECT <BAD|ENCODING> ABSENT
SELECT <0|db>
SELECT 0
SELECT 0
SELECT 0
SWAPDB db db
WAIT 0 0
ECHO value
PING [value]

XADD stream streamid field value
XADD stream streamid field value
XADD stream [NOMKSTREAM] streamid <field value>*
XADD stream MAXLEN few streamid field value
XADD stream MINID streamid streamid field value
XADD <stream|any> <NOMKSTREAM|MAXLEN|few|MINID|LIMIT|streamid|BAD>* field value
XLEN <stream|any>
XRANGE stream streambound streambound [COUNT count]
XREVRANGE stream streambound streambound [COUNT count]
XDEL stream streamid*
XTRIM stream <MAXLEN few|MINID streamid>
XTRIM stream <MAXLEN|MINID|LIMIT few|integer|streamid|BAD>*
XSETID stream streamid [ENTRIESADDED few] [MAXDELETEDID streamid]
XREAD [COUNT count] STREAMS <stream|any> streamid
XREAD [COUNT few] STREAMS stream stream streamid streamid
XGROUP CREATE stream group streamid [MKSTREAM] [ENTRIESREAD few]
XGROUP SETID stream group streamid [ENTRIESREAD few]
XGROUP DESTROY stream group
XGROUP <CREATECONSUMER|DELCONSUMER> stream group consumer
XREADGROUP GROUP group consumer [COUNT few] [NOACK] STREAMS stream groupid
XREADGROUP GROUP group consumer STREAMS stream groupid
XACK stream group streamid*
XPENDING stream group
XPENDING stream group IDLE 9999999 streambound streambound count [consumer]
XCLAIM stream group consumer 0 streamid* [JUSTID] [FORCE] [RETRYCOUNT few] [LASTID streamid]
XAUTOCLAIM stream group consumer 0 streambound [COUNT few] [JUSTID]
XINFO GROUPS <stream|any>

EXPIRE any seconds [NX|XX|GT|LT]
PEXPIRE any milliseconds [NX|XX|GT|LT]
EXPIREAT any clockseconds [NX|XX|GT|LT]
PEXPIREAT any clockmilliseconds [NX|XX|GT|LT]
EXPIRE any seconds <NX|XX|GT|LT|BAD>*
PERSIST any

MULTI
EXEC
DISCARD
WATCH any*
UNWATCH
COMMAND GETKEYS <SET A B|MGET A B C|ZUNIONSTORE A 2 B C|SORT A STORE B|LMPOP 2 A B LEFT|ZADD A|GET|PING|BLPOP A B 0|XYZ A>
NOSUCHCOMMAND value*
COMMAND COUNTER
OBJECT
`;

const waiting = `
BLPOP list* timeout
BRPOP list* timeout
BLMOVE list list <LEFT|RIGHT> <LEFT|RIGHT> timeout
BRPOPLPUSH list list timeout
BLMPOP timeout lists <LEFT|RIGHT> [COUNT count]
BZPOPMIN zset* timeout
BZPOPMAX zset* timeout
XREAD BLOCK 5 STREAMS stream streamid
XREADGROUP GROUP group consumer BLOCK 5 STREAMS stream groupid
BZMPOP timeout zsets <MIN|MAX> [COUNT count]
`;

const unordered = `
HKEYS hash
HVALS hash
SMEMBERS set
SINTER set*
SUNION set*
SDIFF set*
KEYS pattern
SORT <list|set|zset|any> BY <NOSORT|PLAIN> [GET got]
`;

const pairs = `
HGETALL hash
`;

const scans = `
SCAN cursor COUNT 1000000 [MATCH pattern] [TYPE type]
SSCAN set cursor COUNT 1000000 [MATCH pattern]
`;

const scansOfPairs = `
HSCAN hash cursor COUNT 1000000 [MATCH pattern]
ZSCAN zset cursor COUNT 1000000 [MATCH pattern]
`;

const times = `
TTL any
PTTL any
EXPIRETIME any
PEXPIRETIME any
`;

const draws: readonly [candidates: string, draw: string, removes: boolean][] = [
  ['SMEMBERS', 'SPOP set [draw]', true],
  ['SMEMBERS', 'SRANDMEMBER set [draw]', false],
  ['HGETALL', 'HRANDFIELD hash', false],
  ['HGETALL', 'HRANDFIELD hash draw [WITHVALUES]', false],
  ['ZSCORES', 'ZRANDMEMBER zset', false],
  ['ZSCORES', 'ZRANDMEMBER zset draw [WITHSCORES]', false],
  ['KEYS', 'RANDOMKEY', false],
];

function lines(text: string, rule: Rule, waits = false): Line[] {
  const patterns = text.split('\n').filter((line) => line !== '');
  return patterns.map((line) => ({
    pattern: new Pattern(line, kinds),
    rule: rule === 'exact' && /^B?Z|^SORT/.test(line) ? 'scores' : rule,
    waits,
  }));
}

export const allLines: readonly Line[] = [
  ...lines(exact, 'exact'),
  ...lines(waiting, 'exact', true),
  ...lines(unordered, 'unordered'),
  ...lines(pairs, 'pairs'),
  ...lines(scans, 'scan'),
  ...lines(scansOfPairs, 'scan-pairs'),
  ...lines(times, 'time'),
];

export const allDraws: readonly Draw[] = draws.map(([candidates, draw, removes]) => ({
  candidates,
  draw: new Pattern(draw, kinds),
  removes,
}));
