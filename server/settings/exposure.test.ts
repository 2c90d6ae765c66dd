import { expect, test } from 'vitest';
import { type Config, defaultConfig } from './schema.ts';
import { exposures } from './exposure.ts';
import { LiveConfig } from './live-config.ts';

const check = (change: Partial<Config>, isOpen: boolean, expected: string[]) =>
  expect(
    exposures({ ...defaultConfig(), ...change }, isOpen).map((problem) => problem.split(' ', 2)[0]),
    JSON.stringify(change),
  ).toEqual(expected);

test('an open server may be reached from its own machine only', () => {
  check({}, true, []);
  check({ 'redis.host': '::1', 'influx.host': 'localhost' }, true, []);
  check({ 'redis.host': '0.0.0.0' }, true, ['redis.host']);
  check({ 'redis.host': '::', 'influx.host': '10.0.0.1' }, true, ['redis.host', 'influx.host']);
});

test('one with a password, or whose owner insists, may be reached by all', () => {
  check({ 'redis.host': '0.0.0.0', 'influx.host': '0.0.0.0' }, false, []);
  check({ 'redis.host': '0.0.0.0', 'influx.host': '0.0.0.0', 'protected-mode': 'no' }, true, []);
});

test('a certificate asked of every client is as good as a password', () => {
  const tls = { 'redis.host': '0.0.0.0', 'tls.client-auth': 'require' } as const;
  check({ ...tls, 'redis.tls': 'on' }, true, []);
  // The ordinary port would still be open.
  check({ ...tls, 'redis.tls-port': 6380 }, true, ['redis.host']);
  check({ ...tls, 'redis.tls': 'on', 'tls.client-auth': 'optional' }, true, ['redis.host']);
});

test('a password that is all that stands before a network is not taken away while running', () => {
  const problemOf = (change: Partial<Config>) =>
    new LiveConfig({ ...defaultConfig(), 'redis.password': 'x', ...change }).check(
      'redis.password',
      '',
    );
  expect(problemOf({})).toBeUndefined();
  expect(problemOf({ 'redis.host': '0.0.0.0' })).toMatch(/^redis.host 0.0.0.0 can be reached/);
  expect(problemOf({ 'redis.host': '0.0.0.0', 'protected-mode': 'no' })).toBeUndefined();
});
