import { expect, test } from 'vitest';
import { statementKind } from './statement-kind.ts';

const alike = (a: string, b: string) => expect(statementKind(a), b).toBe(statementKind(b));
const unlike = (a: string, b: string) => expect(statementKind(a), b).not.toBe(statementKind(b));

test('values that change from one time to the next make no difference', () => {
  alike(
    "SELECT max(v) FROM cpu WHERE host = 'host_9' AND time >= '2016-01-01T07:47:52Z'",
    "SELECT max(v) FROM cpu WHERE host = 'host_123' AND time >= '2020-02-02T00:00:00Z'",
  );
  alike(
    'SELECT v FROM m WHERE time >= 1577836800000ms AND time < 1577840400000ms',
    'SELECT v FROM m WHERE time >= 15778ms AND time < 2000000000000000ms',
  );
  alike("SELECT v FROM m WHERE h = 'it\\'s'", "SELECT v FROM m WHERE h = 'x'");
});

test('what is asked for does', () => {
  const text = 'SELECT mean(v) FROM m WHERE time > now() - 1h GROUP BY time(1m)';
  for (const other of [
    'SELECT max(v) FROM m WHERE time > now() - 1h GROUP BY time(1m)',
    'SELECT mean(v) FROM n WHERE time > now() - 1h GROUP BY time(1m)',
    'SELECT mean(v) FROM m WHERE time > now() - 30d GROUP BY time(1m)',
    'SELECT mean(v) FROM m WHERE time > now() - 1h GROUP BY time(10s)',
    `${text} LIMIT 10`,
  ]) {
    unlike(text, other);
  }
  unlike('SELECT v FROM "sensor 12345"', 'SELECT v FROM "sensor 54321"');
});

test('texts that are cut off anywhere have a kind', () => {
  const text = `SELECT "a\\"b" FROM m WHERE h = 'x\\`;
  for (let end = 0; end <= text.length; end++) {
    expect(Number.isInteger(statementKind(text.slice(0, end)))).toBe(true);
  }
  alike(`SELECT v FROM m WHERE ${'a'.repeat(5000)}`, `SELECT v FROM m WHERE ${'a'.repeat(6000)}`);
});
