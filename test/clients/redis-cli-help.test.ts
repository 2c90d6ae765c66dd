// Argument hints of redis-cli from COMMAND DOCS: the same as with a redis-server.

import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';

const version = (name: string) => spawnSync(name, ['--version'], { encoding: 'utf8' }).stdout ?? '';
// Other versions word and order their arguments differently.
const comparable = [version('redis-cli'), version('redis-server')].every((text) =>
  /\b7\.0\.\d+/.test(text),
);
if (!comparable) console.warn('skipped: no redis-cli and redis-server 7.0');

describe.skipIf(!comparable)('help in redis-cli', () => {
  let polyrow: Polyrow;
  let redis: RedisProcess;
  beforeAll(async () => {
    [polyrow, redis] = await Promise.all([Polyrow.start(), RedisProcess.start()]);
  });
  afterAll(async () => {
    await Promise.all([polyrow?.remove(), redis?.remove()]);
  });

  /** The arguments that redis-cli shows for each command it has help for. */
  function help(port: number, options: string[], ...about: string[]): Map<string, string> {
    const words = ['-p', `${port}`, ...options, 'help', ...about];
    const { stdout } = spawnSync('redis-cli', words, { encoding: 'utf8' });
    // Bold and grey, between escape sequences.
    const heads = stdout.matchAll(/\[1m(.*?).\[0m .\[90m(.*?).\[0m/g);
    return new Map([...heads].map(([, command, syntax]) => [command!, syntax!]));
  }

  test.each(['set', 'zadd', 'zrange', 'lpos'])('of %s', (command) => {
    for (const options of [[], ['-3']]) {
      const ours = help(polyrow.redisPort, options, command);
      expect(ours.get(command.toUpperCase())).toMatch(/^key /);
      expect(ours).toEqual(help(redis.port, options, command));
    }
  });

  test.each([
    ['string', 22],
    ['hash', 16],
    ['list', 22],
    ['set', 17],
    ['sorted-set', 35],
    ['bitmap', 7],
    ['hyperloglog', 5],
    ['geo', 10],
    ['generic', 30],
    ['pubsub', 14],
    ['transactions', 5],
    ['connection', 22],
    ['server', 45],
  ])('of every command of group %s', (group, atLeast) => {
    const ours = help(polyrow.redisPort, [], `@${group}`);
    const theirs = help(redis.port, [], `@${group}`);
    const shared = [...ours].filter(([command]) => theirs.has(command));
    expect(shared.length).toBeGreaterThanOrEqual(atLeast);
    for (const [command, syntax] of shared) {
      expect(`${command} ${syntax}`).toBe(`${command} ${theirs.get(command)}`);
    }
  });
});
