// A whole server whose metadata is in MongoDB: it serves on while that is out of reach, starts without it,
// and takes its documents along when the setting changes.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Polyrow, StartError } from '../support/polyrow.ts';
import { availableServers, MongoServer } from './mongo-server.ts';
import { TcpProxy } from './tcp-proxy.ts';

const { kinds, missing } = await availableServers();
test.runIf(kinds.length === 0)(`not tried: ${missing.join('. ')}`, (context) => context.skip());

const timeout = 120_000;

async function ask(server: Polyrow, path: string, method = 'GET', body?: object) {
  const token = readFileSync(join(server.dataDir, 'admin-token'), 'utf8').trim();
  const answer = await fetch(server.admin + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, text: await answer.text() };
}

const alter = (server: Polyrow, readOnly: boolean) =>
  ask(server, '/v1/tables/3', 'PATCH', { readOnly });

async function metric(server: Polyrow, name: string): Promise<number> {
  const { text } = await ask(server, '/metrics');
  return Number(new RegExp(`^polyrow_metadata_${name} (.*)$`, 'm').exec(text)?.[1]);
}

async function setsAndGets(server: Polyrow, value: string): Promise<void> {
  const client = await server.client();
  expect(await client.text('SET', 'key', value)).toBe('+OK');
  expect(await client.text('GET', 'key')).toContain(value);
  client.socket.destroy();
}

describe.each(kinds.slice(0, 1))('metadata in $name', (kind) => {
  let mongo: MongoServer;
  let proxy: TcpProxy;
  let flags: string[];
  let server: Polyrow | undefined;
  let databases = 0;
  beforeAll(async () => {
    mongo = await MongoServer.start(kind);
  });
  afterAll(() => mongo?.remove());
  beforeEach(async () => {
    proxy = await TcpProxy.start(mongo.port);
    const uri = mongo.uri(`server${databases++}`, proxy.port);
    flags = ['--metadata', uri];
  });
  afterEach(async () => {
    await server?.remove();
    server = undefined;
    await proxy.close();
  });

  test('a server serves on while its metadata is out of reach', { timeout }, async () => {
    server = await Polyrow.start({ flags });
    expect((await alter(server, true)).status).toBe(200);
    expect(await metric(server, 'up')).toBe(1);

    proxy.cut();
    await expect.poll(() => metric(server!, 'up')).toBe(0);
    await setsAndGets(server, 'without');
    expect((await ask(server, '/readyz')).text).toBe('{"status":"ready"}');
    expect((await ask(server, '/v1/tables/3')).text).toContain('"readOnly":true');
    const refused = await alter(server, false);
    expect(refused).toMatchObject({ status: 503 });
    expect(refused.text).toContain('metadata cannot be changed now');
    expect(await metric(server, 'last_known_age_seconds')).toBeGreaterThan(0);
    expect(server.output).toContain('is out of reach: serving with the last known state');

    proxy.open();
    await expect.poll(() => metric(server!, 'up')).toBe(1);
    expect((await alter(server, false)).status).toBe(200);
    await server.stop();
  });

  test('limits on request units go on as last known', { timeout }, async () => {
    server = await Polyrow.start({ flags });
    const limits = { ruPerSecond: 500 };
    const shop = { name: 'shop', password: 'shop', limits };
    expect((await ask(server, '/v1/tenants', 'POST', shop)).status).toBe(201);
    proxy.cut();
    await expect.poll(() => metric(server!, 'up')).toBe(0);
    const spent = async (): Promise<number> => {
      const client = await server!.client();
      await client.text('AUTH', 'shop', 'shop');
      const begun = performance.now();
      let sent = 0;
      for (; performance.now() - begun < 4000; sent += 100) {
        await client.pipeline(Array.from({ length: 100 }, () => ['SET', 'key', 'value']));
      }
      const seconds = (performance.now() - begun) / 1000;
      client.socket.destroy();
      return sent / seconds;
    };
    // A short write is one unit and a little more; a second's quota is there to begin with.
    expect(await spent()).toBeLessThan(700);
    const cut = await ask(server, '/v1/tenants/shop/limits', 'PATCH', { ruPerSecond: 0 });
    expect(cut.status).toBe(503);

    await server.kill();
    await server.restart();
    expect(await spent()).toBeLessThan(700);
    proxy.open();
    await expect.poll(() => metric(server!, 'up')).toBe(1);
    const lifted = await ask(server, '/v1/tenants/shop/limits', 'PATCH', { ruPerSecond: 0 });
    expect(lifted.status).toBe(200);
    expect(await spent()).toBeGreaterThan(700);
    await server.stop();
  });

  test('a server starts with what it last knew', { timeout }, async () => {
    server = await Polyrow.start({ flags });
    await setsAndGets(server, 'before');
    expect((await alter(server, true)).status).toBe(200);
    await server.kill();
    proxy.cut();
    await server.restart();
    expect((await ask(server, '/v1/tables/3')).text).toContain('"readOnly":true');
    expect(await metric(server, 'up')).toBe(0);
    await setsAndGets(server, 'after');
    const client = await server.client();
    await client.text('SELECT', 3);
    expect(await client.text('SET', 'key', 'x')).toContain('READONLY');
    client.socket.destroy();

    proxy.open();
    await expect.poll(() => metric(server!, 'up')).toBe(1);
    expect((await alter(server, false)).status).toBe(200);
    await server.stop();
  });

  test('a first start needs the metadata, and shows no password', { timeout }, async () => {
    proxy.cut();
    const uri = flags[1]!.replace('//', '//polyrow:hush@');
    const failure = await Polyrow.start({ flags: ['--metadata', uri] }).catch((error) => error);
    expect(failure).toBeInstanceOf(StartError);
    expect((failure as StartError).output).toContain('there is no copy of the last known state');
    expect((failure as StartError).output).not.toContain('hush');
  });

  test('the documents move when the setting changes, both ways', { timeout }, async () => {
    server = await Polyrow.start();
    expect((await alter(server, true)).status).toBe(200);
    await server.restart(flags);
    expect(server.lifeOutput).toMatch(/\d+ metadata documents moved from the data directory/);
    expect((await ask(server, '/v1/tables/3')).text).toContain('"readOnly":true');
    expect((await alter(server, false)).status).toBe(200);
    await server.restart();
    expect(server.lifeOutput).not.toContain('moved');
    await server.restart([]);
    expect(server.lifeOutput).toContain('moved into the data directory');
    expect((await ask(server, '/v1/tables/3')).text).toContain('"readOnly":false');
    await server.stop();
  });
});
