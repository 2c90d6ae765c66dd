// Commands whose keyspace notifications are compared with redis-server's. Each line is one command; between slashes
// commands of one MULTI.

export const notifiedCommands: readonly string[] = `
SET a 1
SET a 2
SET a 3 EX 100
SET a 4 KEEPTTL
SETNX a 5
SETNX new 5
GETSET a 6
GETDEL new
GETEX a EX 100
GETEX a PERSIST
GETEX a PX 0
GET a
GET missing
EXISTS missing a
TTL missing
TYPE missing
STRLEN missing
MGET a missing other
HGET missing f
LLEN missing
MSET a 1 b 2
MSETNX a 1 c 2
MSETNX c 1 d 2
SETEX e 100 v
PSETEX e 100000 v
APPEND a x
APPEND fresh x
SETRANGE a 1 y
SETRANGE r 3 y
SET n 1
INCR n
INCRBY n 2
DECR n
DECRBY n 3
INCRBYFLOAT n 1.5
SETBIT bits 3 1
BITFIELD bits SET u8 0 7
BITFIELD bits GET u8 0
BITOP OR target bits a
BITOP OR target missing
PFADD hll a b
PFADD hll a b
PFMERGE hll2 hll
LPUSH list a b
RPUSH list c
LPUSHX list d
RPUSHX missing d
LINSERT list BEFORE c z
LSET list 0 q
LREM list 1 z
LTRIM list 0 1
LPOP list
RPOP list
RPUSH list 1 2 3 4
LPOP list 4
RPUSH list 1 2 3
LMOVE list other LEFT RIGHT
LMOVE list list LEFT RIGHT
RPOPLPUSH list other
RPOPLPUSH list other
LMPOP 2 missing other RIGHT COUNT 2
LMPOP 2 missing other LEFT COUNT 2
RPUSH list 1 2
BLPOP list 0
BRPOP list 0
RPUSH list 3 1 2
SORT list STORE sorted
SORT missing STORE sorted
LTRIM list 5 6
SADD s a b c
SADD s a
SREM s a
SREM s missing
SMOVE s s2 b
SMOVE s s2 c
SPOP s2
SPOP s2 5
SADD s a b c
SADD s2 b c
SINTERSTORE dst s s2
SUNIONSTORE dst s s2
SDIFFSTORE dst s2 s
HSET h a 1 b 2
HSET h a 1
HMSET h a 2
HSETNX h a 3
HSETNX h c 3
HINCRBY h a 1
HINCRBYFLOAT h a 1.5
HDEL h a
HDEL h b c
ZADD z 1 a 2 b 3 c
ZADD z 1 a
ZADD z INCR 1 a
ZINCRBY z 1 a
ZREM z a
ZPOPMIN z
ZPOPMAX z
ZADD z 1 a 2 b 3 c 4 d
ZRANGESTORE zr z 0 1
ZREMRANGEBYRANK z 0 0
ZREMRANGEBYSCORE z 2 2
ZREMRANGEBYLEX z [c [c
ZMPOP 1 z MIN
ZADD z 1 a 2 b
ZADD z2 1 a
ZUNIONSTORE zd 2 z z2
ZINTERSTORE zd 2 z z2
ZDIFFSTORE zd 2 z2 z
BZPOPMIN z 0
BZPOPMAX z 0
GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
GEOSEARCHSTORE g2 g FROMLONLAT 15 37 BYRADIUS 200 km
GEORADIUS g 15 37 200 km STORE g3
XADD x 1-1 a b
XADD x MAXLEN 1 2-1 a b
XADD x 3-1 a b
XDEL x 3-1
XTRIM x MAXLEN 0
XSETID x 9-1
XGROUP CREATE x grp $
XGROUP CREATE y grp $ MKSTREAM
XGROUP SETID x grp 0
XGROUP CREATECONSUMER x grp Bob
XGROUP DELCONSUMER x grp Bob
XADD x 10-1 a b
XREADGROUP GROUP grp Alice STREAMS x >
XCLAIM x grp Mike 0 10-1
XAUTOCLAIM x grp Lee 0 0
XACK x grp 10-1
XGROUP DESTROY x grp
EXPIRE a 100
PEXPIRE a 100000
PERSIST a
PERSIST a
EXPIREAT a 1
SET a 1
SET b 2
RENAME a b
RENAMENX b c2
RENAMENX c2 n
COPY n m
COPY n m REPLACE
MOVE m 5
DEL n m missing
UNLINK e
DEL s dst h z zd
SADD s a
SADD s b
MULTI / SET k 1 / INCR k / EXPIRE k 100 / DEL k / EXEC
EVAL return{redis.call('set','k',1),redis.call('lpush','l2',1),redis.call('del','k')} 2 k l2
FLUSHDB
SET a 1
SWAPDB 0 1
SWAPDB 0 1
`
  .trim()
  .split('\n');
