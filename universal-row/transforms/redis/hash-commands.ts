// The commands of hashes, as they are for hashes whose fields may expire, too.

import * as plain from './hash.ts';
import { withTimedFields } from './hash-times/with-timed-fields.ts';

export const hset = withTimedFields(plain.hset);
export const hmset = withTimedFields(plain.hmset);
export const hsetnx = withTimedFields(plain.hsetnx);
export const hget = withTimedFields(plain.hget);
export const hmget = withTimedFields(plain.hmget);
export const hgetall = withTimedFields(plain.hgetall);
export const hkeys = withTimedFields(plain.hkeys);
export const hvals = withTimedFields(plain.hvals);
export const hlen = withTimedFields(plain.hlen);
export const hstrlen = withTimedFields(plain.hstrlen);
export const hexists = withTimedFields(plain.hexists);
export const hdel = withTimedFields(plain.hdel);
export const hincrby = withTimedFields(plain.hincrby, true);
export const hincrbyfloat = withTimedFields(plain.hincrbyfloat, true);
export const hrandfield = withTimedFields(plain.hrandfield);
export const hscan = withTimedFields(plain.hscan);
