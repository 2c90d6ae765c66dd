import { expect, test } from 'vitest';
import {
  clusterAddresses,
  clusterSecretFile,
  formatHostPort,
  parseHostPort,
  rolesOf,
} from './cluster-addresses.ts';
import { ConfigError, resolveConfig } from './resolve.ts';
import type { Config } from './schema.ts';

function configOf(flags: Record<string, string>): Config {
  return resolveConfig({ flags, environment: {} }).config;
}

function problemsOf(flags: Record<string, string>): readonly string[] {
  try {
    configOf(flags);
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
}

test.each([
  ['127.0.0.1:7001', { host: '127.0.0.1', port: 7001 }],
  ['node-1.polyrow:1', { host: 'node-1.polyrow', port: 1 }],
  ['[::1]:65535', { host: '::1', port: 65535 }],
])('%s is a host and a port', (text, expected) => {
  expect(parseHostPort(text)).toEqual(expected);
  expect(formatHostPort(expected)).toBe(text);
});

test.each([
  '',
  'host',
  ':7001',
  'host:',
  'host:0',
  'host:65536',
  '::1:7001',
  'a b:1',
  '[::1]',
  '[]:1',
])('%j is not a host and a port', (text) => expect(parseHostPort(text)).toBeUndefined());

test('a server without cluster.listen is on its own', () => {
  expect(clusterAddresses(configOf({}))).toBeUndefined();
});

test('a node has the roles that it is given, and a server on its own has all', () => {
  const listen = { 'cluster.listen': '10.0.0.1:7001' };
  expect(rolesOf(configOf(listen))).toEqual(['gateway', 'node', 'control']);
  expect(rolesOf(configOf({ ...listen, roles: ' control, gateway' }))).toEqual([
    'gateway',
    'control',
  ]);
  expect(problemsOf({ roles: 'gateway' })[0]).toContain('a server on its own has all roles');
  expect(problemsOf({ ...listen, roles: 'gateway,nodes' })[0]).toContain('"nodes" is none of');
  expect(problemsOf({ ...listen, roles: ',' })[0]).toContain('it must name some of');
});

test('a node is reached by the host it listens on, unless another one is named', () => {
  const flags = {
    'cluster.listen': '10.0.0.1:7001',
    'cluster.seeds': '10.0.0.2:7001, [fd00::3]:7001,',
  };
  expect(clusterAddresses(configOf(flags))).toEqual({
    listen: { host: '10.0.0.1', port: 7001 },
    advertise: '10.0.0.1',
    seeds: [
      { host: '10.0.0.2', port: 7001 },
      { host: 'fd00::3', port: 7001 },
    ],
  });
  const named = { 'cluster.listen': '0.0.0.0:7001', 'cluster.advertise': 'node-1' };
  expect(clusterAddresses(configOf(named))?.advertise).toBe('node-1');
});

test('the secret is in the data directory, unless a file is named', () => {
  expect(clusterSecretFile(configOf({ 'data-dir': '/srv/data' }))).toBe('/srv/data/cluster-secret');
  expect(clusterSecretFile(configOf({ 'cluster.secret-file': '/run/secret' }))).toBe('/run/secret');
});

const listen = { 'cluster.listen': '127.0.0.1:7001' };

test.each([
  [{ 'cluster.seeds': 'a:1' }, 'cluster.seeds (flag --cluster.seeds) needs cluster.listen'],
  [
    { 'cluster.advertise': 'a' },
    'cluster.advertise (flag --cluster.advertise) needs cluster.listen',
  ],
  [
    { 'cluster.listen': '127.0.0.1:0' },
    'cluster.listen cannot be "127.0.0.1:0" (flag --cluster.listen): it must be HOST:PORT with a port from 1 to 65533',
  ],
  [
    { 'cluster.listen': 'here' },
    'cluster.listen cannot be "here" (flag --cluster.listen): it must be HOST:PORT with a port from 1 to 65533',
  ],
  [
    { 'cluster.listen': 'a:65534' },
    'cluster.listen cannot be "a:65534" (flag --cluster.listen): it must be HOST:PORT with a port from 1 to 65533',
  ],
  [
    { 'cluster.listen': '0.0.0.0:7001' },
    'cluster.advertise (default) must be a host by which other nodes reach this one: 0.0.0.0 is all addresses',
  ],
  [
    { ...listen, 'cluster.seeds': 'a:1,b' },
    'cluster.seeds cannot be "a:1,b" (flag --cluster.seeds): "b" is not HOST:PORT',
  ],
  [
    { ...listen, 'cluster.zone': 'a b' },
    'cluster.zone cannot be "a b" (flag --cluster.zone): it must be up to 64 letters, digits, dots and dashes',
  ],
  [
    { ...listen, 'redis.port': '7003' },
    'redis.port cannot be 7003 (flag --redis.port): cluster.listen 127.0.0.1:7001 uses the ports 7001 to 7003',
  ],
  [
    { ...listen, 'redis.port': '0', 'redis.cluster-mode': 'redirect' },
    'redis.port cannot be 0 (flag --redis.port): redis.cluster-mode redirect sends clients to ports that stay',
  ],
  [
    { ...listen, metadata: 'mongodb://127.0.0.1' },
    'metadata (flag --metadata) must be embedded with cluster.listen: the nodes keep the metadata themselves',
  ],
] as [Record<string, string>, string][])('%j is refused', (flags, problem) => {
  expect(problemsOf(flags)).toEqual([problem]);
});

test('free ports beside a cluster are no overlap', () => {
  expect(problemsOf({ ...listen, 'redis.port': '0', 'admin.port': '7004' })).toEqual([]);
});
