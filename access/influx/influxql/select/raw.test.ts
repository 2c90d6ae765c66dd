import { check } from './testing/check.ts';

const cpu = `
cpu,host=a v=1,i=1i 0
cpu,host=a v=2,i=2i 10
cpu,host=a v=4,i=4i,t="x" 20
cpu,host=b v=3,i=3i,b=true 5
cpu,host=b v=5 20
cpu,host=b v=8,i=9i 70
mem,host=a used=7 15
`;

check('columns', cpu, [
  ['SELECT v FROM cpu', 'cpu time v: 0 1; 5 3; 10 2; 20 4; 20 5; 70 8'],
  // Fields and tags together, by name.
  ['SELECT * FROM cpu WHERE time < 10s', 'cpu time b host i t v: 0  a 1  1; 5 true b 3  3'],
  // A tag of GROUP BY leaves the columns.
  [
    'SELECT * FROM cpu WHERE time < 10s GROUP BY host',
    'cpu{host=a} time b i t v: 0  1  1',
    'cpu{host=b} time b i t v: 5 true 3  3',
  ],
  ['SELECT *::field FROM cpu WHERE time = 0s', 'cpu time b i t v: 0  1  1'],
  ['SELECT v, *::tag FROM cpu WHERE time = 0s', 'cpu time v host: 0 1 a'],
  ['SELECT /^[iv]$/ FROM cpu WHERE time = 0s', 'cpu time i v: 0 1 1'],
  ['SELECT v, nosuch FROM cpu WHERE time < 5s', 'cpu time v nosuch: 0 1 '],
  ['SELECT host FROM cpu', ''],
  ['SELECT nosuch FROM cpu', ''],
  ['SELECT v FROM nosuch', ''],
  ['SELECT v, nosuchtag FROM cpu WHERE time = 0s', 'cpu time v nosuchtag: 0 1 '],
  [
    'SELECT v*2, v+i, v AS a, v AS a, v FROM cpu WHERE time = 10s',
    'cpu time v v_i a a v_1: 10 4 4 2 2 2',
  ],
  ['SELECT v, v, v FROM cpu WHERE time = 10s', 'cpu time v v_1 v_2: 10 2 2 2'],
  ['SELECT time AS at, v FROM cpu WHERE time = 10s', 'cpu at v: 10 2'],
]);

check('order and limits', cpu, [
  // Rows of the same time in the order of the series.
  ['SELECT v, host FROM cpu WHERE time = 20s', 'cpu time v host: 20 4 a; 20 5 b'],
  [
    'SELECT v, host FROM cpu WHERE time = 20s ORDER BY time DESC',
    'cpu time v host: 20 5 b; 20 4 a',
  ],
  ['SELECT v FROM cpu ORDER BY time DESC', 'cpu time v: 70 8; 20 5; 20 4; 10 2; 5 3; 0 1'],
  ['SELECT v FROM cpu LIMIT 2', 'cpu time v: 0 1; 5 3'],
  ['SELECT v FROM cpu LIMIT 2 OFFSET 3', 'cpu time v: 20 4; 20 5'],
  ['SELECT v FROM cpu LIMIT 0', 'cpu time v: 0 1; 5 3; 10 2; 20 4; 20 5; 70 8'],
  ['SELECT v FROM cpu OFFSET 100', ''],
  ['SELECT v FROM cpu GROUP BY host LIMIT 1', 'cpu{host=a} time v: 0 1', 'cpu{host=b} time v: 5 3'],
  [
    'SELECT v FROM cpu GROUP BY host ORDER BY time DESC LIMIT 1',
    'cpu{host=b} time v: 70 8',
    'cpu{host=a} time v: 20 4',
  ],
  ['SELECT v FROM cpu GROUP BY host LIMIT 1 SLIMIT 1', 'cpu{host=a} time v: 0 1'],
  ['SELECT v FROM cpu GROUP BY host LIMIT 1 SLIMIT 1 SOFFSET 1', 'cpu{host=b} time v: 5 3'],
  ['SELECT v FROM cpu GROUP BY host SOFFSET 9', ''],
  // SLIMIT picks from the ascending list all the same.
  [
    'SELECT v FROM cpu GROUP BY host ORDER BY time DESC LIMIT 1 SLIMIT 1',
    'cpu{host=a} time v: 20 4',
  ],
]);

check('sources', cpu, [
  [
    'SELECT used, v FROM mem, cpu WHERE time >= 15s AND time <= 20s',
    'cpu time used v: 20  4; 20  5',
    'mem time used v: 15 7 ',
  ],
  ['SELECT used FROM /^m/', 'mem time used: 15 7'],
  ['SELECT v FROM db.autogen.cpu WHERE time = 0s', 'cpu time v: 0 1'],
  ['SELECT v FROM nosuch.autogen.cpu', 'error: database not found: nosuch'],
  ['SELECT v FROM db.nosuch.cpu', 'error: retention policy not found: nosuch'],
]);

check('grouping', `m,a=1,b=2 v=1 0\nm,b=1 v=2 0\nm,a=1,b=1 v=3 1`, [
  ['SELECT v FROM m GROUP BY a', 'm{a=} time v: 0 2', 'm{a=1} time v: 0 1; 1 3'],
  // m,a=1,b=1 comes before m,a=1,b=2, and both before m,b=1.
  ['SELECT v FROM m GROUP BY nosuchtag', 'm{nosuchtag=} time v: 0 1; 0 2; 1 3'],
  [
    'SELECT v FROM m GROUP BY *',
    'm{a=,b=1} time v: 0 2',
    'm{a=1,b=1} time v: 1 3',
    'm{a=1,b=2} time v: 0 1',
  ],
  // By the first key in order, however they are written.
  [
    'SELECT v FROM m GROUP BY b, a',
    'm{a=,b=1} time v: 0 2',
    'm{a=1,b=1} time v: 1 3',
    'm{a=1,b=2} time v: 0 1',
  ],
  ['SELECT * FROM m GROUP BY /^b$/ LIMIT 1', 'm{b=1} time v: 0 2', 'm{b=2} time v: 0 1'],
]);

check('conditions', cpu, [
  [`SELECT v FROM cpu WHERE host = 'a' AND v > 1`, 'cpu time v: 10 2; 20 4'],
  [`SELECT v FROM cpu WHERE host = 'a' AND v > 1.5 OR v = 8`, 'cpu time v: 10 2; 20 4; 70 8'],
  ['SELECT v FROM cpu WHERE i > 2.5', 'cpu time v: 5 3; 20 4; 70 8'],
  // A comparison with what is missing is false.
  ['SELECT v FROM cpu WHERE i != 1', 'cpu time v: 5 3; 10 2; 20 4; 70 8'],
  ['SELECT v FROM cpu WHERE v > i', ''],
  ['SELECT v FROM cpu WHERE v < i', 'cpu time v: 70 8'],
  [`SELECT v FROM cpu WHERE t = 'x'`, 'cpu time v: 20 4'],
  [`SELECT v FROM cpu WHERE t != 'y'`, 'cpu time v: 20 4'],
  [`SELECT v FROM cpu WHERE t > 'a'`, ''],
  [`SELECT v FROM cpu WHERE t =~ /^X/`, ''],
  [`SELECT v FROM cpu WHERE t =~ /x/`, 'cpu time v: 20 4'],
  ['SELECT v FROM cpu WHERE b = true', 'cpu time v: 5 3'],
  // Beside a boolean, nothing is false.
  ['SELECT v FROM cpu WHERE b = false AND time < 5s', 'cpu time v: 0 1'],
  [`SELECT v FROM cpu WHERE nosuchtag = ''`, 'cpu time v: 0 1; 5 3; 10 2; 20 4; 20 5; 70 8'],
  [`SELECT v FROM cpu WHERE nosuchtag = 'x'`, ''],
  [`SELECT v FROM cpu WHERE host > 'a'`, ''],
  [`SELECT v FROM cpu WHERE host = "t"`, ''],
  ['SELECT v FROM cpu WHERE v + i = 8', 'cpu time v: 20 4'],
  ['SELECT v FROM cpu WHERE v % 2 = 0 AND i & 1 = 1', 'cpu time v: 70 8'],
  // The field of the condition alone makes no row.
  ['SELECT t FROM cpu WHERE v > 3', 'cpu time t: 20 x'],
  ['SELECT v FROM cpu WHERE mean(v) > 1', 'error: invalid function call in condition: mean(v)'],
]);

check('casts', `m,h=x v=3.7,i=5i,s="text",b=true 1\nm,h=x v=-3.7 2`, [
  ['SELECT v::integer, i::float FROM m', 'm time v i: 1 3 5; 2 -3 '],
  ['SELECT v::string FROM m', ''],
  ['SELECT i::boolean, v FROM m', 'm time i v: 1  3.7; 2  -3.7'],
  ['SELECT v, h::field FROM m', 'm time v h: 1 3.7 ; 2 -3.7 '],
  ['SELECT v, h::tag FROM m', 'm time v h: 1 3.7 x; 2 -3.7 x'],
  ['SELECT v FROM m WHERE v::integer = 3', 'm time v: 1 3.7'],
  ['SELECT sum(v::integer) FROM m', 'm time sum: 0 0'],
]);

check('types that differ', `m v=1i 1\nm v=2.5 2\nm v=3i 3`, [
  ['SELECT v FROM m', 'm time v: 1 1; 2 2.5; 3 3'],
  ['SELECT sum(v) FROM m', 'm time sum: 0 6.5'],
]);

check(
  'arithmetic',
  `m a=7i,b=2i,z=0i,f=2.5,n=-7i 1\nm a=9223372036854775807i,b=9223372036854775806i,z=0i 2`,
  [
    [
      'SELECT a/b, a%b, a+b, a-b, a*b FROM m WHERE time = 1s',
      'm time a_b a_b_1 a_b_2 a_b_3 a_b_4: 1 3.5 1 9 5 14',
    ],
    ['SELECT a/z, a%z, f/z FROM m WHERE time = 1s', 'm time a_z a_z_1 f_z: 1 0 0 0'],
    ['SELECT a & b, a | b, a ^ b FROM m WHERE time = 1s', 'm time a_b a_b_1 a_b_2: 1 2 7 5'],
    ['SELECT n % b, n / b, -n FROM m WHERE time = 1s', 'm time n_b n_b_1 n: 1 -1 -3.5 7'],
    // 64 bits, and no more.
    [
      'SELECT a+1, a*2, a-b FROM m WHERE time = 2s',
      'm time a a_1 a_b: 2 -9223372036854775808 -2 1',
    ],
    ['SELECT a FROM m WHERE time = 2s', 'm time a: 2 9223372036854775807'],
    ['SELECT a+f, f FROM m', 'm time a_f f: 1 9.5 2.5; 2  '],
    [
      'SELECT abs(n), sqrt(b*b), pow(b, 3), floor(f), ceil(f), round(f) FROM m WHERE time = 1s',
      'm time abs sqrt pow floor ceil round: 1 -7 2 8 2 3 3',
    ],
    [
      'SELECT log2(b), log10(f*4), log(b*4, b), exp(z), ln(b/b) FROM m WHERE time = 1s',
      'm time log2 log10 log exp ln: 1 1 1 3 1 0',
    ],
    ['SELECT atan2(z, f), sin(z), cos(z) FROM m WHERE time = 1s', 'm time atan2 sin cos: 1 0 0 1'],
    ['SELECT ln(n), f FROM m WHERE time = 1s', 'm time ln f: 1  2.5'],
  ],
);

check('rows and fill', `m,h=x v=1 1\nm,h=x w=2 2\nm v=3 3`, [
  ['SELECT v, w, h FROM m fill(0)', 'm time v w h: 1 1 0 x; 2 0 2 x; 3 3 0 0'],
  ['SELECT v, w FROM m fill(previous)', 'm time v w: 1 1 ; 2 1 2; 3 3 2'],
]);
