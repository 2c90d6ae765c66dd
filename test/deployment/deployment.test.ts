// Files under deploy/: whether they name settings that there are, with values that go together. deploy/helm/check.sh renders
// the chart and checks it against Kubernetes' schemas; it needs helm.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { clusterAddresses, clusterSecretFile } from '../../server/settings/cluster-addresses.ts';
import { resolveConfig } from '../../server/settings/resolve.ts';
import type { Config } from '../../server/settings/schema.ts';

const deploy = new URL('../../deploy/', import.meta.url);
const directory = mkdtempSync(join(tmpdir(), 'polyrow-deployment-'));
const password = join(directory, 'password');
writeFileSync(password, 'hush\n');
afterAll(() => rmSync(directory, { recursive: true }));

function read(path: string): string {
  return readFileSync(new URL(path, deploy), 'utf8');
}

function check(config: Config, secretFile: string, advertise: string): void {
  expect(config['redis.password']).toBe('hush');
  expect(config['wal.fsync']).toBe('always');
  expect(clusterSecretFile(config)).toBe(secretFile);
  const addresses = clusterAddresses(config)!;
  expect(addresses.advertise).toBe(advertise);
  expect(addresses.seeds).toHaveLength(3);
  // A node that was given its own address as a seed leaves it out.
  expect(addresses.seeds).toContainEqual({ host: advertise, port: addresses.listen.port });
}

test('the compose file', () => {
  const text = read('compose/compose.yaml');
  const shared = Object.fromEntries(
    [...text.matchAll(/^ {2}(POLYROW_\w+): (\S+)$/gm)].map(([, name, value]) => [name!, value!]),
  );
  const nodes = [
    ...text.matchAll(/POLYROW_CLUSTER_ADVERTISE: (\w+), POLYROW_CLUSTER_ZONE: (\w+)/g),
  ];
  expect(nodes).toHaveLength(3);
  for (const [, advertise, zone] of nodes) {
    const environment = {
      ...shared,
      POLYROW_REDIS_PASSWORD_FILE: password,
      POLYROW_CLUSTER_ADVERTISE: advertise,
      POLYROW_CLUSTER_ZONE: zone,
    };
    const { config } = resolveConfig({ flags: {}, environment });
    check(config, '/run/secrets/cluster-secret', advertise!);
    for (const seed of clusterAddresses(config)!.seeds)
      expect(text).toContain(`hostname: ${seed.host}`);
  }
});

test('the file of the systemd unit', () => {
  const file = join(directory, 'polyrow.toml');
  writeFileSync(
    file,
    read('systemd/polyrow.toml').replace('/etc/polyrow/redis-password', password),
  );
  const { config } = resolveConfig({ flags: {}, environment: {}, file });
  check(config, '/etc/polyrow/cluster-secret', 'node1.example.org');
  const unit = read('systemd/polyrow.service');
  expect(unit).toContain('start --config /etc/polyrow/polyrow.toml');
  expect(unit).toContain(`StateDirectory=${config['data-dir'].replace('/var/lib/', '')}\n`);
});

test('the Helm chart', () => {
  const name = 'database-polyrow-0.database-polyrow-nodes.data.svc';
  const text = read('helm/polyrow/templates/nodes.yaml');
  const flags = Object.fromEntries(
    [...text.matchAll(/^ +- --([a-z.-]+)=(.*)$/gm)].map(([, key, value]) => [key!, value!]),
  );
  expect(Object.keys(flags)).toContain('cluster.listen');
  const settings = /^settings:\n((?: {2}\S.*\n)+)/m.exec(read('helm/polyrow/values.yaml'))![1]!;
  for (const [, key, value] of settings.matchAll(/^ {2}(\S+): "?([^"\n]*)"?$/gm))
    flags[key!] = value!;
  const seeds = [0, 1, 2].map((i) => `${name.replace('-0.', `-${i}.`)}:7073`).join(',');
  const { config } = resolveConfig({
    flags: {
      ...flags,
      'redis.password-file': password,
      'admin.token-file': password,
      'cluster.advertise': name,
      'cluster.seeds': seeds,
      'cluster.zone': 'a',
    },
    environment: {},
  });
  check(config, '/secrets/cluster-secret', name);
  expect(config['cluster.replicas']).toBe(3);
  // Probes come from elsewhere.
  expect(config['admin.host']).toBe('0.0.0.0');
  for (const port of [
    config['redis.port'],
    config['influx.port'],
    config['admin.port'],
    7073,
    7074,
    7075,
  ]) {
    expect(text).toContain(`containerPort: ${port} `);
  }
});

test('the image has what package.json names, and the ports of the settings', () => {
  const text = read('docker/Dockerfile');
  const { config } = resolveConfig({ flags: {}, environment: {} });
  const exposed = /^EXPOSE (.*)$/m.exec(text)![1]!.split(' ').map(Number);
  expect(exposed).toEqual(
    expect.arrayContaining([config['redis.port'], config['influx.port'], config['admin.port']]),
  );
  const { bin } = JSON.parse(read('../package.json')) as { bin: { polyrow: string } };
  expect(text).toContain(`/opt/polyrow/${bin.polyrow.replace('./', '')} `);
  expect(
    resolveConfig({
      flags: {},
      environment: { POLYROW_DATA_DIR: '/data', POLYROW_LOG_FORMAT: 'json' },
    }).config['log.format'],
  ).toBe('json');
});
