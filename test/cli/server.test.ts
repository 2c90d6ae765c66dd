import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isBuilt, polyrow, PolyrowProcess } from './polyrow-process.ts';

let directory: string;
let running: PolyrowProcess[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-server-'));
  running = [];
});
afterEach(async () => {
  for (const server of running) {
    server.kill('SIGKILL');
    await server.finish();
  }
  rmSync(directory, { recursive: true });
});

function launch(...words: string[]): PolyrowProcess {
  const ports = [
    '--redis.port',
    '0',
    '--influx.port',
    '0',
    '--admin.port',
    '0',
    '--data-dir',
    directory,
  ];
  const server = new PolyrowProcess(['start', ...ports, ...words], {});
  running.push(server);
  return server;
}

async function start(...words: string[]): Promise<PolyrowProcess> {
  const server = launch(...words);
  await server.ready();
  return server;
}

/** Headers that identify an operator to the admin API. */
function asOperator(): Record<string, string> {
  const token = readFileSync(join(directory, 'admin-token'), 'utf8').trim();
  return { authorization: `Bearer ${token}` };
}

async function page(server: PolyrowProcess, path: string): Promise<string> {
  return await (await fetch(server.url('admin') + path, { headers: asOperator() })).text();
}

const onDirectory = () => ['--data-dir', directory];

describe.skipIf(!isBuilt)('a server', () => {
  test('starts, says where it is, is ready, and stops cleanly', async () => {
    const server = await start('--wal.fsync', 'always');
    expect(server.url('redis')).toMatch(/^redis:\/\/127\.0\.0\.1:\d+$/);
    expect(server.out).toContain(`data   ${directory}\n`);
    expect(server.out).toContain('fsync  always\n');
    expect(await page(server, '/readyz')).toBe('{"status":"ready"}');
    expect(await page(server, '/metrics')).toContain('polyrow_server_unclean_start 0\n');
    expect(existsSync(join(directory, 'unclean'))).toBe(true);
    server.kill('SIGTERM');
    expect(await server.finish()).toMatchObject({ code: 0 });
    for (const file of ['unclean', 'lock', 'admin-endpoint']) {
      expect(existsSync(join(directory, file)), file).toBe(false);
    }
  });

  test('that was killed is known to the next one', async () => {
    const first = await start();
    first.kill('SIGKILL');
    await first.finish();
    const second = await start();
    expect(second.err).toContain('did not stop cleanly');
    expect(await page(second, '/metrics')).toContain('polyrow_server_unclean_start 1\n');
  });

  test('keeps a second one off its data directory', async () => {
    const first = await start();
    const second = await launch().finish();
    expect(second).toMatchObject({
      code: 1,
      out: '',
      err: `polyrow: the data directory ${directory} is in use by process ${first.pid}: stop it, or choose another --data-dir\n`,
    });
    expect(await page(first, '/readyz')).toBe('{"status":"ready"}');
  });

  test.each(['redis.port', 'influx.port', 'admin.port'])(
    'names the flag when %s is taken',
    async (key) => {
      const other = createServer();
      await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
      try {
        const { port } = other.address() as { port: number };
        const { code, err } = await launch(`--${key}`, String(port)).finish();
        expect(code).toBe(1);
        expect(err).toMatch(new RegExp(`^polyrow: .*${port}.*in use.*--${key}.*\\n$`, 'm'));
        // Nothing was served, so the next start has nothing to recover from.
        expect(existsSync(join(directory, 'unclean'))).toBe(false);
      } finally {
        other.close();
      }
    },
  );

  test('tells its tables and changes them live', async () => {
    const server = await start();
    const made = await polyrow([
      'table',
      'create',
      '3',
      '--model',
      'kv',
      '--json',
      ...onDirectory(),
    ]);
    expect(JSON.parse(made.out)).toMatchObject({ id: 3, model: 'kv', rows: 0 });
    const again = await polyrow(['table', 'create', '3', ...onDirectory()]);
    expect(again).toMatchObject({ code: 4, err: expect.stringContaining('already exists') });
    server.kill('SIGTERM');
    await server.finish();
    const next = await start();
    expect(JSON.parse(await page(next, '/v1/tables/3'))).toMatchObject({ model: 'kv' });
  });

  test('takes another default model for databases that are empty', async () => {
    const first = await start();
    first.kill('SIGTERM');
    await first.finish();
    const second = await start('--redis.default-model', 'kv');
    expect(JSON.parse(await page(second, '/v1/tables/0'))).toMatchObject({ model: 'kv' });
  });

  test('changes a live setting', async () => {
    const server = await start();
    const change = async (body: object) =>
      await fetch(`${server.url('admin')}/v1/config`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json', ...asOperator() },
        body: JSON.stringify(body),
      });
    expect((await change({ 'wal.fsync': 'always' })).status).toBe(200);
    const refused = await change({ 'redis.port': 1 });
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: 'redis.port can only be changed by a restart' },
    ]);
    const { settings } = JSON.parse(await page(server, '/v1/config')) as {
      settings: { key: string; value: unknown; source: string }[];
    };
    expect(settings.find(({ key }) => key === 'wal.fsync')).toMatchObject({
      value: 'always',
      source: 'changed while running',
    });
  });

  test('shows the token of an operator at its first start, and never again', async () => {
    const first = await start();
    expect(first.out).toContain(
      `token  ${asOperator()['authorization']!.slice('Bearer '.length)}\n`,
    );
    expect(statSync(join(directory, 'admin-token')).mode & 0o777).toBe(0o600);
    first.kill('SIGTERM');
    await first.finish();
    expect((await start()).out).not.toContain('token');
  });

  test('takes a signal that comes twice in a row, as through npm, for one', async () => {
    const server = await start();
    server.kill('SIGINT');
    server.kill('SIGINT');
    expect(await server.finish()).toMatchObject({ code: 0 });
    expect(existsSync(join(directory, 'unclean'))).toBe(false);
  });
});
