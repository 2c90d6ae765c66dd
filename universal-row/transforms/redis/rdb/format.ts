// Numbers of the RDB format: types of values, and encodings of strings.

import { CommandError } from '../../../errors.ts';

export const RdbType = {
  string: 0,
  list: 1,
  set: 2,
  rankedText: 3,
  hash: 4,
  ranked: 5,
  hashZipmap: 9,
  listZiplist: 10,
  setIntset: 11,
  rankedZiplist: 12,
  hashZiplist: 13,
  listQuicklist: 14,
  stream: 15,
  hashListpack: 16,
  rankedListpack: 17,
  listQuicklist2: 18,
  /** Streams of Redis 7.0. */
  stream2: 19,
  setListpack: 20,
  /** Streams of Redis 7.2. */
  stream3: 21,
  /** Hashes of Redis 7.4 with fields that expire. */
  hashTimes: 24,
  hashTimesListpack: 25,
} as const;

/** Encodings of a string where a length is expected. */
export const StringEncoding = { int8: 0, int16: 1, int32: 2, compressed: 3 } as const;

/** RDB version of Redis 7.0, which is written. */
export const writtenVersion = 10;
/** RDB version of Redis 7.4, which has hashes with expiring fields. */
export const timesVersion = 12;
/** RDB version of Redis 7.4, the newest that is read. */
export const newestVersion = 12;
/** Version and checksum behind a value. */
export const footerBytes = 10;

export const badData = new CommandError('ERR Bad data format');
