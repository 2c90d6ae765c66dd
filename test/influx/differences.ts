// Where our answer is another than influxd's on purpose: the statement or body, and why.

const tie =
  'rows of several series with one time: influxd 1.6 gives them in an order of its own, which depends on how many there are; ours is that of the series keys';
const mode = 'values that are equally frequent: influxd sorts them unstably; ours is the earliest';
const inOneBody =
  'two types for a new field in one body: influxd 1.6 stores neither point; ours keeps the first, as it does when they come one after the other';

const range = `time >= '2016-01-01T00:00:00Z' AND time < '2016-01-01T02:00:00Z'`;

export const expectedDifferences: ReadonlyMap<string, string> = new Map<string, string>([
  ['SELECT v FROM tie, old, one', tie],
  ['SELECT v FROM one, old, tie', tie],
  [`SELECT mode(count) FROM cpu WHERE ${range} GROUP BY time(7m)`, mode],
  [`SELECT mode(state) FROM cpu WHERE ${range} GROUP BY host`, mode],
  [`SELECT mode(state) FROM cpu WHERE ${range} GROUP BY time(20m), * fill(none)`, mode],
  ['m v=1i\nm v=1', inOneBody],
  ['m v=1\nm v="s"', inOneBody],
  ['m v=1\nbad\nm v="s"\nworse', inOneBody],
  ['SHOW USERS', 'there is always the user `default`, who may also come in over Redis'],
  ['m v=1u', 'influxd 1.6 has no unsigned integers unless built with them'],
  ['m v="a"b', 'influxd 1.6 stores what is behind the closing quote as part of the string'],
  [
    'm v=1 99999999999999999999',
    "a time beyond 64 bits is told as one that is out of range, not with the parser's own words",
  ],
  [
    'm time=1',
    'a point whose only field is `time` is refused by both, but influxd lists its series',
  ],
  [
    'DELETE FROM tie WHERE v > 1',
    'the error names a shard: influxd the one of its shards that happened to be first',
  ],
]);
