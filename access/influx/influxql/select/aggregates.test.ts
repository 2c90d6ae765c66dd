import { check } from './testing/check.ts';

const cpu = `
cpu,host=a v=1,i=1i 0
cpu,host=a v=2,i=2i 10
cpu,host=a v=4,i=4i,t="x" 20
cpu,host=b v=3,i=3i,b=true 5
cpu,host=b v=5 20
cpu,host=b v=8,i=9i 70
`;

check('one row', cpu, [
  [
    'SELECT mean(v), sum(i), count(t) FROM cpu GROUP BY host',
    'cpu{host=a} time mean sum count: 0 2.3333333333333335 7 1',
    'cpu{host=b} time mean sum count: 0 5.333333333333333 12 ',
  ],
  ['SELECT count(v) FROM cpu WHERE time > 1000s', ''],
  ['SELECT count(nosuch) FROM cpu', ''],
  ['SELECT mean(v), mean(nosuch) FROM cpu', 'cpu time mean mean_1: 0 3.8333333333333335 '],
  // Stamped with the lower bound of the time range.
  ['SELECT sum(v) FROM cpu WHERE time >= 10s', 'cpu time sum: 10 19'],
  ['SELECT sum(v) FROM cpu WHERE time > 5s', 'cpu time sum: 5000000001n 19'],
  ['SELECT count(*) FROM cpu', 'cpu time count_b count_i count_t count_v: 0 1 5 1 6'],
  ['SELECT mean(*) FROM cpu', 'cpu time mean_i mean_v: 0 3.8 3.8333333333333335'],
  [
    'SELECT max(*), min(*) FROM cpu',
    'cpu time max_b max_i max_v min_b min_i min_v: 0 true 9 8 true 1 1',
  ],
  ['SELECT first(/^[it]$/) FROM cpu', 'cpu time first_i first_t: 0 1 x'],
  ['SELECT max(v) - min(v), max(v) / 2 FROM cpu', 'cpu time max_min max: 0 7 4'],
  ['SELECT spread(v), spread(i) FROM cpu', 'cpu time spread spread_1: 0 7 8'],
]);

check('selectors', cpu, [
  // One alone keeps its time, two do not.
  ['SELECT max(v) FROM cpu', 'cpu time max: 70 8'],
  ['SELECT min(v), max(v) FROM cpu', 'cpu time min max: 0 1 8'],
  ['SELECT max(v) * 2 FROM cpu', 'cpu time max: 70 16'],
  [
    'SELECT last(v) FROM cpu GROUP BY host',
    'cpu{host=a} time last: 20 4',
    'cpu{host=b} time last: 70 8',
  ],
  ['SELECT first(v), host FROM cpu', 'cpu time first host: 0 1 a'],
  ['SELECT max(v), host, i FROM cpu WHERE time < 60s', 'cpu time max host i: 20 5 b '],
  ['SELECT percentile(v, 50), host FROM cpu', 'cpu time percentile host: 5 3 b'],
  ['SELECT percentile(v, 0) FROM cpu', ''],
  ['SELECT percentile(v, 0), max(v) FROM cpu', 'cpu time percentile max: 0  8'],
  ['SELECT percentile(i, 100) FROM cpu', 'cpu time percentile: 70 9'],
  ['SELECT first(t), last(b) FROM cpu', 'cpu time first last: 0 x true'],
]);

check('ties', `m,k=a v=5,w=1 1\nm,k=b v=7,w=2 1\nm,k=b v=7,w=3 2\nm,k=a v=7,w=4 2`, [
  // At the same time the larger value counts, but beside another column the first series.
  ['SELECT first(v) FROM m', 'm time first: 1 7'],
  ['SELECT first(v), k FROM m', 'm time first k: 1 5 a'],
  ['SELECT max(v), k FROM m', 'm time max k: 1 7 b'],
  ['SELECT last(w) FROM m', 'm time last: 2 4'],
  ['SELECT min(v), w FROM m', 'm time min w: 1 5 1'],
]);

check('equal points', `m,k=a v=9 1\nm,k=b v=9 1\nm,k=c v=1 1`, [
  ['SELECT top(v, 1), k FROM m', 'm time top k: 1 9 a'],
  ['SELECT top(v, k, 1) FROM m', 'm time top k: 1 9 b'],
]);

check('top and bottom', cpu, [
  // By time, not by value.
  ['SELECT top(v, 3) FROM cpu', 'cpu time top: 20 5; 20 4; 70 8'],
  ['SELECT bottom(v, 2), host FROM cpu', 'cpu time bottom host: 0 1 a; 10 2 a'],
  ['SELECT top(v, host, 2) FROM cpu', 'cpu time top host: 20 4 a; 70 8 b'],
  ['SELECT top(v, host, 5), i FROM cpu', 'cpu time top host i: 20 4 a 4; 70 8 b 9'],
  [
    'SELECT top(v, 1) FROM cpu WHERE time >= 0s AND time < 80s GROUP BY time(20s)',
    'cpu time top: 5 3; 20 5; 70 8',
  ],
  [
    'SELECT bottom(i, 1) FROM cpu GROUP BY host',
    'cpu{host=a} time bottom: 0 1',
    'cpu{host=b} time bottom: 5 3',
  ],
]);

check(
  'buckets',
  cpu,
  [
    [
      'SELECT max(v) FROM cpu WHERE time >= 0s AND time < 30s GROUP BY time(10s)',
      'cpu time max: 0 3; 10 2; 20 5',
    ],
    // The first bucket begins before the range, but has only points inside it.
    [
      'SELECT count(v) FROM cpu WHERE time >= 5s AND time < 21s GROUP BY time(10s)',
      'cpu time count: 0 1; 10 1; 20 2',
    ],
    [
      'SELECT count(v) FROM cpu WHERE time >= 0s AND time < 30s GROUP BY time(10s), host',
      'cpu{host=a} time count: 0 1; 10 1; 20 1',
      'cpu{host=b} time count: 0 1; 10 0; 20 1',
    ],
    [
      'SELECT sum(v) FROM cpu WHERE time >= 0s AND time < 30s GROUP BY time(10s, 5s)',
      'cpu time sum: -5 1; 5 5; 15 9; 25 ',
    ],
    [
      'SELECT sum(v) FROM cpu WHERE time >= 0s AND time < 30s GROUP BY time(10s, -5s)',
      'cpu time sum: -5 1; 5 5; 15 9; 25 ',
    ],
    [
      'SELECT sum(v) FROM cpu WHERE time < 30s GROUP BY time(10s) ORDER BY time DESC',
      'cpu time sum: 20 9; 10 2; 0 4',
    ],
    // Without a lower bound from the first point on, without an upper one until now.
    ["SELECT sum(i) FROM cpu WHERE host = 'b' GROUP BY time(1m)", 'cpu time sum: 0 3; 60 9; 120 '],
    // The end of the range is what counts, not the last point.
    [
      'SELECT min(v) FROM cpu WHERE time < 25s GROUP BY time(10s) LIMIT 2',
      'cpu time min: 0 1; 10 2',
    ],
    ['SELECT min(v) FROM cpu GROUP BY time(10s) LIMIT 2 OFFSET 1', 'cpu time min: 10 2; 20 4'],
    [
      'SELECT min(v), max(i) FROM cpu GROUP BY time(10s), host LIMIT 2',
      'cpu{host=a} time min max: 0 1 1; 10 2 2',
      'cpu{host=b} time min max: 0 3 3; 10  ',
    ],
    [
      'SELECT first(v), host FROM cpu GROUP BY time(20s) LIMIT 2',
      'cpu time first host: 0 1 a; 20 5 b',
    ],
    ['SELECT mean(v) FROM cpu WHERE time >= 100s AND time < 120s GROUP BY time(10s)', ''],
  ],
  { now: 130_000_000_000n },
);

check(
  'values at once',
  `m v=1,i=1i 1\nm v=1,i=2i 2\nm v=4,i=2i 3\nm v=7,i=9i 4\nm s="b",t=true 5\nm s="a",t=false 6\nm s="b",t=false 7`,
  [
    ['SELECT median(v), median(i) FROM m', 'm time median median_1: 0 2.5 2'],
    ['SELECT median(v) FROM m WHERE time <= 3s', 'm time median: 0 1'],
    [
      'SELECT mode(v), mode(i), mode(s), mode(t) FROM m',
      'm time mode mode_1 mode_2 mode_3: 0 1 2 b false',
    ],
    [
      'SELECT stddev(v) FROM m WHERE time >= 2s AND time <= 3s',
      'm time stddev: 2 2.1213203435596424',
    ],
    ['SELECT stddev(v) FROM m WHERE time = 1s', 'm time stddev: 1 '],
    ['SELECT distinct(v) FROM m', 'm time distinct: 0 1; 0 4; 0 7'],
    ['SELECT DISTINCT s FROM m', 'm time distinct: 0 b; 0 a'],
    ['SELECT count(distinct(i)), count(DISTINCT s) FROM m', 'm time count count_1: 0 3 2'],
    ['SELECT distinct(v) FROM m GROUP BY time(2s)', 'm time distinct: 0 1; 2 1; 2 4; 4 7'],
    ['SELECT percentile(v, 75), percentile(v, 25) FROM m', 'm time percentile percentile_1: 0 4 1'],
    ['SELECT sample(v, 10) FROM m', 'm time sample: 1 1; 2 1; 3 4; 4 7'],
  ],
  { now: 5_000_000_000n },
);

check('fill', `m v=6i,f=1 0\nm v=7i,f=2 30\nm,h=x w=1 0`, [
  [
    'SELECT sum(v) FROM m WHERE time >= 0s AND time < 40s GROUP BY time(10s)',
    'm time sum: 0 6; 10 ; 20 ; 30 7',
  ],
  [
    'SELECT sum(v) FROM m WHERE time >= 0s AND time < 40s GROUP BY time(10s) fill(none)',
    'm time sum: 0 6; 30 7',
  ],
  [
    'SELECT sum(v) FROM m WHERE time >= 0s AND time < 40s GROUP BY time(10s) fill(3.7)',
    'm time sum: 0 6; 10 3; 20 3; 30 7',
  ],
  [
    'SELECT sum(v), sum(f) FROM m WHERE time >= -10s AND time < 50s GROUP BY time(10s) fill(previous)',
    'm time sum sum_1: -10  ; 0 6 1; 10 6 1; 20 6 1; 30 7 2; 40 7 2',
  ],
  [
    'SELECT sum(f) FROM m WHERE time >= 0s AND time < 50s GROUP BY time(10s) fill(previous) ORDER BY time DESC',
    'm time sum: 40 ; 30 2; 20 2; 10 2; 0 1',
  ],
  [
    'SELECT sum(v), sum(f) FROM m WHERE time >= -10s AND time < 50s GROUP BY time(10s) fill(linear)',
    'm time sum sum_1: -10  ; 0 6 1; 10 6 1.3333333333333333; 20 6 1.6666666666666665; 30 7 2; 40  ',
  ],
  [
    'SELECT count(v) FROM m WHERE time >= 0s AND time < 40s GROUP BY time(10s) fill(previous)',
    'm time count: 0 1; 10 1; 20 1; 30 1',
  ],
  [
    'SELECT count(v), sum(v) FROM m WHERE time >= 0s AND time < 40s GROUP BY time(10s)',
    'm time count sum: 0 1 6; 10 0 ; 20 0 ; 30 1 7',
  ],
  [
    'SELECT sum(v) FROM m WHERE time >= 0s AND time < 40s GROUP BY time(10s) fill(none) LIMIT 1 OFFSET 1',
    'm time sum: 30 7',
  ],
  // A series without a point has no rows.
  [
    'SELECT sum(v) FROM m WHERE time >= 0s AND time < 20s GROUP BY time(10s), h fill(0)',
    'm{h=} time sum: 0 6; 10 0',
  ],
  [
    'SELECT max(v), h, f FROM m WHERE time >= 0s AND time < 20s GROUP BY time(10s) fill(0)',
    'm time max h f: 0 6 0 1; 10 0 0 0',
  ],
]);

check('wide integers', `m v=9223372036854775807i 1\nm v=1i 2\nm v=9007199254740993i 3`, [
  ['SELECT sum(v) FROM m', 'm time sum: 0 -9214364837600034815'],
  ['SELECT max(v) FROM m', 'm time max: 1 9223372036854775807'],
  [
    'SELECT min(v), last(v), spread(v) FROM m',
    'm time min last spread: 0 1 9007199254740993 9223372036854775806',
  ],
  ['SELECT mean(v) FROM m WHERE time >= 2s', 'm time mean: 2 4503599627370497'],
  ['SELECT difference(v) FROM m', 'm time difference: 2 -9223372036854775806; 3 9007199254740992'],
  [
    'SELECT cumulative_sum(v) FROM m',
    'm time cumulative_sum: 1 9223372036854775807; 2 -9223372036854775808; 3 -9214364837600034815',
  ],
  ['SELECT median(v) FROM m', 'm time median: 0 9007199254740992'],
  ['SELECT v FROM m WHERE v = 9007199254740993', 'm time v: 3 9007199254740993'],
  ['SELECT top(v, 2) FROM m', 'm time top: 1 9223372036854775807; 3 9007199254740993'],
]);

// 2018-03-25 02:00 in Paris was 03:00, and 2018-10-28 03:00 was 02:00.
check(
  'zones',
  `m v=1 1521932400\nm v=2 1521936000\nm v=4 1522018800\nm v=8 1540677600\nm v=16 1540767600\nm v=32 1540771200`,
  [
    [
      `SELECT sum(v) FROM m WHERE time >= '2018-03-24' AND time < '2018-03-27' GROUP BY time(1d) fill(none) tz('Europe/Paris')`,
      // 25 March has 23 hours: from 23:00 UTC to 22:00 UTC.
      'm time sum: 1521932400 3; 1522015200 4',
    ],
    [
      `SELECT sum(v) FROM m WHERE time >= '2018-10-28' AND time < '2018-10-30' GROUP BY time(1d) tz('Europe/Paris')`,
      // 28 October has 25 hours.
      'm time sum: 1540677600 8; 1540767600 48',
    ],
  ],
);
