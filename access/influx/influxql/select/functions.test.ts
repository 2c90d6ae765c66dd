import { check } from './testing/check.ts';

const m = `
m v=1,i=1i 0
m v=3,i=4i 10
m v=2,i=9i 20
m v=8,i=2i 40
`;

check('over rows', m, [
  ['SELECT derivative(v) FROM m', 'm time derivative: 10 0.2; 20 -0.1; 40 0.3'],
  ['SELECT derivative(v, 10s) FROM m', 'm time derivative: 10 2; 20 -1; 40 3'],
  ['SELECT non_negative_derivative(v, 10s) FROM m', 'm time non_negative_derivative: 10 2; 40 3'],
  ['SELECT difference(i) FROM m', 'm time difference: 10 3; 20 5; 40 -7'],
  ['SELECT non_negative_difference(i) FROM m', 'm time non_negative_difference: 10 3; 20 5'],
  ['SELECT cumulative_sum(i) FROM m', 'm time cumulative_sum: 0 1; 10 5; 20 14; 40 16'],
  ['SELECT moving_average(i, 2) FROM m', 'm time moving_average: 10 2.5; 20 6.5; 40 5.5'],
  ['SELECT moving_average(v, 4) FROM m', 'm time moving_average: 40 3.5'],
  ['SELECT elapsed(v) FROM m WHERE time < 20s', 'm time elapsed: 10 10000000000'],
  ['SELECT elapsed(v, 3s) FROM m', 'm time elapsed: 10 3; 20 3; 40 6'],
  ['SELECT difference(*) FROM m WHERE time <= 10s', 'm time difference_i difference_v: 10 3 2'],
  ['SELECT derivative(v, 10s) FROM m ORDER BY time DESC', 'm time derivative: 20 -3; 10 1; 0 -2'],
  [
    'SELECT difference(v), cumulative_sum(v) FROM m WHERE time <= 10s',
    'm time difference cumulative_sum: 0  1; 10 2 4',
  ],
  ['SELECT difference(v) * 2 FROM m WHERE time <= 10s', 'm time difference: 10 4'],
]);

check('rows of the same time', `m,h=a v=1 0\nm,h=b v=5 0\nm,h=a v=2 10\nm,h=b v=9 10`, [
  // Only the first of them counts, except where every row does.
  ['SELECT difference(v) FROM m', 'm time difference: 10 1'],
  ['SELECT derivative(v, 10s) FROM m', 'm time derivative: 10 1'],
  ['SELECT elapsed(v, 1s) FROM m', 'm time elapsed: 0 0; 10 10; 10 0'],
  ['SELECT cumulative_sum(v) FROM m', 'm time cumulative_sum: 0 1; 0 6; 10 8; 10 17'],
]);

check('over buckets', m, [
  // The bucket before the range is read too.
  [
    'SELECT difference(mean(v)) FROM m WHERE time >= 10s AND time < 30s GROUP BY time(10s)',
    'm time difference: 10 2; 20 -1',
  ],
  [
    'SELECT difference(mean(v)) FROM m WHERE time >= 0s AND time < 50s GROUP BY time(10s)',
    'm time difference: 10 2; 20 -1; 40 6',
  ],
  [
    'SELECT difference(mean(v)) FROM m WHERE time >= 0s AND time < 20s GROUP BY time(10s) fill(0)',
    'm time difference: 0 1; 10 2',
  ],
  [
    'SELECT derivative(mean(v)) FROM m WHERE time >= 0s AND time < 50s GROUP BY time(20s)',
    'm time derivative: 20 0; 40 6',
  ],
  [
    'SELECT derivative(mean(v), 1s) FROM m WHERE time >= 0s AND time < 50s GROUP BY time(20s)',
    'm time derivative: 20 0; 40 0.3',
  ],
  [
    'SELECT cumulative_sum(sum(i)) FROM m WHERE time >= 10s AND time < 50s GROUP BY time(20s)',
    'm time cumulative_sum: 0 4; 20 13; 40 15',
  ],
  [
    'SELECT moving_average(max(v), 2) FROM m WHERE time >= 20s AND time < 50s GROUP BY time(20s)',
    'm time moving_average: 20 2.5; 40 5',
  ],
  [
    'SELECT elapsed(count(v), 1s) FROM m WHERE time >= 0s AND time < 50s GROUP BY time(20s) fill(none)',
    'm time elapsed: 20 20; 40 20',
  ],
  [
    'SELECT mean(v), difference(mean(v)) FROM m WHERE time >= 10s AND time < 30s GROUP BY time(10s)',
    'm time mean difference: 10 3 2; 20 2 -1',
  ],
  [
    'SELECT difference(mean(v)) FROM m WHERE time >= 0s AND time < 30s GROUP BY time(10s) ORDER BY time DESC',
    'm time difference: 10 1; 0 -2',
  ],
  [
    'SELECT count(v) / 2, sum(i) % 5 FROM m WHERE time >= 0s AND time < 40s GROUP BY time(20s)',
    'm time count sum: 0 1 0; 20 0.5 4',
  ],
]);

check('integral', m, [
  ['SELECT integral(v) FROM m', 'm time integral: 0 145'],
  ['SELECT integral(v, 10s) FROM m', 'm time integral: 0 14.5'],
  ['SELECT integral(v) FROM m WHERE time >= 10s', 'm time integral: 10 125'],
  // Cut at the edge of the buckets: at 20s the line is at 2, at 30s between 2 and 8.
  [
    'SELECT integral(v) FROM m WHERE time >= 0s AND time < 50s GROUP BY time(30s)',
    'm time integral: 0 80; 30 65',
  ],
  ['SELECT integral(v) FROM m WHERE time = 10s', ''],
]);

check('one point', 'm v=4 7', [
  ['SELECT integral(v) FROM m', 'm time integral: 0 0'],
  ['SELECT difference(v) FROM m', ''],
  ['SELECT stddev(v), spread(v), median(v) FROM m', 'm time stddev spread median: 0  0 4'],
]);

check('holt_winters', 'm v=10 0\nm v=20 10\nm v=30 20\nm v=40 30', [
  [
    'SELECT round(holt_winters(mean(v), 2, 0) / 10) FROM m WHERE time < 40s GROUP BY time(10s)',
    'm time round: 40 5; 50 6',
  ],
  ['SELECT holt_winters(mean(v), 2, 0) FROM m WHERE time < 10s GROUP BY time(10s)', ''],
]);
