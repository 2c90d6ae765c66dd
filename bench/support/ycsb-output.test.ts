import { expect, test } from 'vitest';
import { parseYcsbOutput } from './ycsb-output.ts';

const java = `Command line: -db site.ycsb.db.RedisClient -t
[OVERALL], RunTime(ms), 2500
[OVERALL], Throughput(ops/sec), 40000.5
[TOTAL_GCs_G1_Young_Generation], Count, 3
[READ], Operations, 50000
[READ], 99thPercentileLatency(us), 120
[READ], Return=OK, 50000
[CLEANUP], Operations, 1
[CLEANUP], 99thPercentileLatency(us), 4000
[READ-MODIFY-WRITE], 99thPercentileLatency(us), 1250
`;

test('reads the throughput, and the 99th percentile of each operation in ms', () => {
  const { throughput, p99Ms } = parseYcsbOutput(java);
  expect(throughput).toBe(40_000.5);
  expect([...p99Ms]).toEqual([
    ['READ', 0.12],
    ['READ-MODIFY-WRITE', 1.25],
  ]);
});

test.each([
  '[READ], Return=ERROR, 3',
  '[INSERT-FAILED], Operations, 1',
  'java.net.SocketException',
])('takes no result with the line %s', (line) => {
  expect(() => parseYcsbOutput(`${java}${line}\n`)).toThrow('failed operations');
});

test('takes no output without measurements', () => {
  expect(() => parseYcsbOutput('[OVERALL], Throughput(ops/sec), 10\n')).toThrow('YCSB said');
});
