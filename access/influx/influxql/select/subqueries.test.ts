import { check } from './testing/check.ts';

const cpu = `
cpu,host=a,dc=x v=1,i=1i 0
cpu,host=a,dc=x v=2,i=2i 10
cpu,host=a,dc=x v=4,i=4i,t="x" 20
cpu,host=b,dc=y v=3,i=3i,b=true 5
cpu,host=b,dc=y v=5 20
cpu,host=b,dc=y v=8,i=9i 70
`;

check('subqueries', cpu, [
  ['SELECT mean(m) FROM (SELECT max(v) AS m FROM cpu GROUP BY host)', 'cpu time mean: 0 6'],
  [
    'SELECT m, host FROM (SELECT max(v) AS m FROM cpu GROUP BY host)',
    'cpu time m host: 20 4 a; 70 8 b',
  ],
  ['SELECT * FROM (SELECT max(v) AS m FROM cpu GROUP BY host)', 'cpu time host m: 20 a 4; 70 b 8'],
  [
    'SELECT max FROM (SELECT max(v) FROM cpu GROUP BY host) GROUP BY host',
    'cpu{host=a} time max: 20 4',
    'cpu{host=b} time max: 70 8',
  ],
  // The tags of the outer GROUP BY hold inside too.
  [
    'SELECT sum(v) FROM (SELECT v FROM cpu) GROUP BY host',
    'cpu{host=a} time sum: 0 7',
    'cpu{host=b} time sum: 0 16',
  ],
  [
    'SELECT sum(m) FROM (SELECT mean(v) AS m FROM cpu WHERE time < 30s GROUP BY time(10s))',
    'cpu time sum: 0 8.5',
  ],
  [
    'SELECT max(m) FROM (SELECT mean(v) AS m FROM cpu GROUP BY time(10s)) WHERE time < 30s GROUP BY time(20s)',
    'cpu time max: 0 2; 20 4.5',
  ],
  // A subquery without GROUP BY time has that of the statement around.
  [
    'SELECT sum(m) FROM (SELECT max(v) AS m FROM cpu GROUP BY host) WHERE time >= 0s AND time < 30s GROUP BY time(10s)',
    'cpu time sum: 0 4; 10 2; 20 9',
  ],
  [
    `SELECT m FROM (SELECT max(v) AS m FROM cpu GROUP BY host) WHERE host = 'b'`,
    'cpu time m: 70 8',
  ],
  ['SELECT m FROM (SELECT max(v) AS m FROM cpu GROUP BY host) WHERE m < 5', 'cpu time m: 20 4'],
  ['SELECT d * 2 FROM (SELECT derivative(v, 1s) AS d FROM cpu) WHERE time = 10s', ''],
  [
    "SELECT w + 1 FROM (SELECT v * 2 AS w FROM cpu WHERE host = 'a')",
    'cpu time w: 0 3; 10 5; 20 9',
  ],
  ['SELECT count(v) FROM (SELECT v FROM cpu LIMIT 2)', 'cpu time count: 0 2'],
  ['SELECT v FROM (SELECT v FROM cpu GROUP BY host LIMIT 1)', 'cpu time v: 0 1; 5 3'],
  [
    'SELECT v FROM (SELECT v FROM cpu GROUP BY host LIMIT 1) ORDER BY time DESC',
    'cpu time v: 70 8; 20 4',
  ],
  [
    'SELECT mean(x) FROM (SELECT sum(s) AS x FROM (SELECT mean(v) AS s FROM cpu GROUP BY host) GROUP BY dc)',
    'cpu time mean: 0 3.833333333333333',
  ],
  ['SELECT nosuch FROM (SELECT v FROM cpu)', ''],
  ['SELECT v, nosuch FROM (SELECT v FROM cpu LIMIT 1)', 'cpu time v nosuch: 0 1 '],
  ['SELECT top, host FROM (SELECT top(v, host, 2) FROM cpu)', 'cpu time top host: 20 4 a; 70 8 b'],
  [
    'SELECT top(m, host, 1) FROM (SELECT max(v) AS m FROM cpu GROUP BY host, dc)',
    'cpu time top host: 70 8 b',
  ],
  ['SELECT last(v) FROM (SELECT v FROM cpu), (SELECT i FROM cpu)', 'cpu time last: 70 8'],
  [
    'SELECT v FROM (SELECT v FROM cpu ORDER BY time DESC)',
    'error: subqueries must be ordered in the same direction as the query itself',
  ],
  ['SELECT sum(v) FROM (SELECT v, v FROM nosuch)', ''],
  [
    'SELECT mean(m) FROM (SELECT max(v) AS m FROM cpu GROUP BY host) SLIMIT 1',
    'cpu time mean: 0 4',
  ],
]);
