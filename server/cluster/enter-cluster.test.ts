import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Health } from '../../control/admin/health.ts';
import { openAuditLog } from '../lifecycle/control-logs.ts';
import { DataDirectory } from '../lifecycle/data-directory.ts';
import { resolveConfig } from '../settings/resolve.ts';
import type { ClusterMetadata, ClusterMetadataOptions } from './cluster-metadata.ts';
import { type Entered, enterCluster } from './enter-cluster.ts';

const token = 'operator-secret-0123456789';
let directory: string;
let data: DataDirectory;
let audit: ReturnType<typeof openAuditLog>;
let stop: AbortController;
let opened: ClusterMetadataOptions[];
let health: Health;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-enter-'));
  data = DataDirectory.open(directory);
  audit = openAuditLog(data, () => {});
  stop = new AbortController();
  opened = [];
  health = new Health();
});
afterEach(async () => {
  await audit.close();
  data.unlock();
  rmSync(directory, { recursive: true });
});

/** `form` is there at once; `join` as soon as `joined` is. */
function enter(
  flags: Record<string, string> = {},
  isMember = false,
  joined: Promise<unknown> = Promise.resolve(),
): Promise<Entered> {
  const all = {
    'data-dir': directory,
    'cluster.listen': '127.0.0.1:7001',
    'admin.port': '0',
    ...flags,
  };
  return enterCluster({
    config: resolveConfig({ flags: all, environment: {} }).config,
    data,
    admin: {
      health,
      audit,
      operatorTokens: [{ name: 'admin-token', secret: token }],
      isLocal: true,
      requestsPerSecond: () => 0,
      onError: () => {},
    },
    isMember,
    open: async (options) => {
      opened.push(options);
      const aborted = new Promise((_, reject) => {
        options.signal!.addEventListener('abort', () => reject(options.signal!.reason as Error));
      });
      if (options.begin === 'join') await Promise.race([joined, aborted]);
      return {} as ClusterMetadata;
    },
    signal: stop.signal,
    report: () => {},
    onFatal: () => {},
  });
}

function makeSecret(text = 'ab'.repeat(32)): void {
  writeFileSync(join(directory, 'cluster-secret'), `${text}\n`);
}

async function ask(method: string, path: string, secret = token) {
  while (!existsSync(join(directory, 'admin-endpoint')))
    await new Promise((done) => setTimeout(done, 5));
  const url = readFileSync(join(directory, 'admin-endpoint'), 'utf8').trim();
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${secret}` },
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

test('a new node waits, says for what, and forms a cluster when it is told to', async () => {
  const entered = enter();
  expect(await ask('GET', '/readyz')).toEqual({
    status: 503,
    body: { status: 'not ready', reasons: ['not in a cluster yet: polyrow cluster init'] },
  });
  expect((await ask('GET', '/livez')).status).toBe(200);
  expect(await ask('GET', '/v1/tables')).toEqual({
    status: 503,
    body: { error: 'the server does not serve yet: not in a cluster yet: polyrow cluster init' },
  });
  const url = readFileSync(join(directory, 'admin-endpoint'), 'utf8').trim();
  expect((await ask('POST', '/v1/cluster/init', 'wrong-token-0123456789')).status).toBe(401);
  expect(opened).toEqual([]);
  const file = join(directory, 'cluster-secret');
  expect(await ask('POST', '/v1/cluster/init')).toEqual({
    status: 201,
    body: { secretFile: file },
  });
  const { secret, adminPort } = await entered;
  // The operator's command that formed the cluster goes on asking there.
  expect(adminPort).toBe(Number(new URL(url).port));
  expect(opened).toMatchObject([{ begin: 'form', seeds: [], directory }]);
  expect(readFileSync(file, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(secret.toString('hex')).toBe(readFileSync(file, 'utf8').trim());
  // The port is free for the pages of a node.
  expect(existsSync(join(directory, 'admin-endpoint'))).toBe(false);
});

test('a secret that is there is that of the new cluster', async () => {
  makeSecret();
  const entered = enter();
  await ask('POST', '/v1/cluster/init');
  expect((await entered).secret.toString('hex')).toBe('ab'.repeat(32));
});

test('a node with seeds joins them', async () => {
  makeSecret();
  await enter({ 'cluster.seeds': '127.0.0.1:7101,127.0.0.1:7201', 'cluster.zone': 'a' });
  expect(opened).toMatchObject([
    {
      begin: 'join',
      seeds: ['127.0.0.1:7101', '127.0.0.1:7201'],
      zone: 'a',
      listen: { port: 7001 },
    },
  ]);
});

test('a node with seeds that nobody answers for may form a cluster after all', async () => {
  makeSecret();
  const entered = enter({ 'cluster.seeds': '127.0.0.1:7101' }, false, new Promise(() => {}));
  expect((await ask('GET', '/readyz')).body['reasons']).toEqual([
    'waiting to join a cluster of cluster.seeds; to form one: polyrow cluster init',
  ]);
  expect((await ask('POST', '/v1/cluster/init')).status).toBe(201);
  await entered;
  expect(opened.map(({ begin }) => begin)).toEqual(['join', 'form']);
});

test('a node that is in a cluster goes on in it, and forms no other one', async () => {
  makeSecret();
  let join!: () => void;
  const entered = enter({}, true, new Promise<void>((resolve) => (join = resolve)));
  expect((await ask('GET', '/readyz')).body['reasons']).toEqual([
    'waiting for the metadata of the cluster',
  ]);
  expect((await ask('POST', '/v1/cluster/init')).status).toBe(409);
  join();
  await entered;
  expect(opened.map(({ begin }) => begin)).toEqual(['join']);
});

test.each([
  ['waits', {}],
  ['joins', { 'cluster.seeds': '127.0.0.1:7101' }],
])('a stop ends the start of a node that %s', async (_, flags) => {
  makeSecret();
  const entered = enter(flags, false, new Promise(() => {}));
  await ask('GET', '/readyz');
  stop.abort(new Error('stopped'));
  await expect(entered).rejects.toThrow('stopped');
});

test('a secret that is missing or damaged is said', async () => {
  await expect(enter({ 'cluster.seeds': '127.0.0.1:7101' })).rejects.toThrow(
    'is missing: copy the secret',
  );
  await expect(enter({}, true)).rejects.toThrow('is missing: copy the secret');
  makeSecret('not a secret');
  await expect(enter()).rejects.toThrow('should hold the secret of the cluster');
});
