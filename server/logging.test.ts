import { expect, test } from 'vitest';
import { loggerTo, plainLine } from './logging.ts';

function collecting() {
  const lines: string[] = [];
  return { lines, stream: { write: (line: string) => void lines.push(line) } };
}

test('secrets are hidden wherever they stand', () => {
  const { lines, stream } = collecting();
  loggerTo(stream, 'info').info({ password: 'hush', client: { token: 'hush' } }, 'hello');
  expect(lines).toHaveLength(1);
  expect(lines[0]).not.toContain('hush');
  expect(JSON.parse(lines[0]!)).toMatchObject({ msg: 'hello', password: '[hidden]' });
});

test('the level can change at any time', () => {
  const { lines, stream } = collecting();
  const logger = loggerTo(stream, 'warn');
  logger.info('not seen');
  logger.level = 'info';
  logger.info('seen');
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['seen']);
});

test('a line for people', () => {
  const json = JSON.stringify({ level: 40, time: 1250, pid: 1, model: 'kv', msg: 'disk is full' });
  expect(plainLine(json)).toBe('00:00:01.250 warn  disk is full {"model":"kv"}\n');
});
