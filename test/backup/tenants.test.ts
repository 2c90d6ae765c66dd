// Tenants in backups: all of them, or one.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import type { Polyrow } from '../support/polyrow.ts';
import { BackupScene } from './backup-commands.ts';

let scene: BackupScene;
beforeEach(() => {
  scene = new BackupScene();
});
afterEach(() => scene.remove());

describe.skipIf(!isBuilt)('a whole server with tenants', () => {
  test('comes back with all of them, and each sees its own', async () => {
    const source = await scene.server();
    const passwords = new Map<string, string>();
    for (const name of ['one', 'two', 'three']) {
      const made = await scene.answer<{ password: string }>(source, 'tenant', 'create', name);
      passwords.set(name, made.password);
      await write(source, name, made.password);
    }
    const client = await source.client();
    await client.text('SET', 'k', 'of default');
    client.close();
    await scene.answer(source, 'tenant', 'drop', 'one', '--yes');
    const admin = await source.client();
    await admin.text('ACL', 'SETUSER', 'carol', 'on', '>secret-of-carol', '+@all', '~*');
    admin.close();
    await scene.backup(source);

    const target = await scene.server();
    const { tenants } = await scene.restore(target);
    expect(tenants.map(({ name, created, state }) => [name, created, state])).toEqual([
      ['default', false, 'active'],
      ['two', true, 'active'],
      ['three', true, 'active'],
    ]);
    for (const name of ['two', 'three']) {
      const reader = await target.client();
      expect(await reader.text('AUTH', name, passwords.get(name)!)).toBe('+OK');
      expect(await reader.text('MGET', 'k', 'other')).toBe(`*["of ${name}" (nil)]`);
      expect(await reader.text('DBSIZE')).toBe(':1');
      reader.close();
    }
    const gone = await target.client();
    expect(await gone.text('AUTH', 'one', passwords.get('one')!)).toMatch(/^-WRONGPASS/);
    expect(await gone.text('GET', 'k')).toBe('"of default"');
    gone.close();
    const carol = await target.client();
    expect(await carol.text('AUTH', 'carol', 'secret-of-carol')).toBe('+OK');
    carol.close();
    // One of them, where the others are already.
    await scene.restore(target, '--tenant', 'two', '--as', 'four');
    const list = await scene.answer<{ name: string }[]>(target, 'tenant', 'list');
    expect(list.map(({ name }) => name).sort()).toEqual(['default', 'four', 'three', 'two']);
  });

  async function write(server: Polyrow, name: string, password: string): Promise<void> {
    const client = await server.client();
    await client.text('AUTH', name, password);
    await client.text('SET', 'k', `of ${name}`);
    client.close();
  }
});

describe.skipIf(!isBuilt)('one tenant', () => {
  test('that is there does not get back users it dropped and tokens it revoked, unless asked', async () => {
    const server = await scene.server();
    await scene.answer(server, 'tenant', 'create', 'shop');
    const user = ['user', 'create', 'eve@shop', '--rules', '+@all ~*'];
    const eve = await scene.answer<{ password: string }>(server, ...user);
    const words = ['token', 'create', 'default@shop'];
    const token = await scene.answer<{ id: string; secret: string }>(server, ...words);
    await scene.backup(server);
    await scene.answer(server, 'user', 'drop', 'eve@shop');
    await scene.answer(server, 'token', 'revoke', token.id, '--tenant', 'shop');

    const login = async (name: string, secret: string): Promise<string> => {
      const client = await server.client();
      const reply = await client.text('AUTH', name, secret);
      client.close();
      return reply;
    };
    const logins = async (tenant: string): Promise<boolean[]> => [
      (await login(`eve@${tenant}`, eve.password)) === '+OK',
      (await login(tenant, token.secret)) === '+OK',
    ];
    const restore = async (...flags: string[]): Promise<string> => {
      const { tenants } = await scene.restore(server, '--tenant', 'shop', ...flags);
      return tenants[0]!.users;
    };
    expect(await restore('--replace')).toBe('kept');
    expect(await logins('shop')).toEqual([false, false]);
    expect(await restore('--as', 'copy')).toBe('restored');
    expect(await logins('copy')).toEqual([false, false]);
    expect(await restore('--replace', '--users')).toBe('restored');
    expect(await logins('shop')).toEqual([true, true]);
  });

  test('goes elsewhere, with its users, and as another one', async () => {
    const source = await scene.server();
    await scene.answer(source, 'tenant', 'create', 'pad', '--databases', '3');
    const words = ['tenant', 'create', 'shop', '--databases', '4'];
    const { password } = await scene.answer<{ password: string }>(source, ...words);
    const mine = await source.client();
    await mine.text('SET', 'mine', '1');
    mine.close();
    const client = await source.client();
    await client.text('AUTH', 'shop', password);
    await client.text('SELECT', '2');
    await client.text('SET', 'k', 'v');
    const auth = `u=shop&p=${password}`;
    const made = await fetch(`${source.influx}/query?${auth}&q=CREATE+DATABASE+d`, {
      method: 'POST',
    });
    expect(made.status).toBe(200);
    await fetch(`${source.influx}/write?${auth}&db=d`, {
      method: 'POST',
      body: 'm v=1 1000000000',
    });
    const backup = await scene.backup(source, '--tenant', 'shop');
    expect(backup.parts.map(({ rows, shards }) => rows ?? shards)).toEqual([1, 1]);

    const target = await scene.server();
    await scene.restore(target);
    await scene.restore(target, '--as', 'copy');
    for (const name of ['shop', 'copy']) {
      const reader = await target.client();
      await reader.text('AUTH', name, password);
      await reader.text('SELECT', '2');
      expect(await reader.text('GET', 'k')).toBe('"v"');
      expect(await reader.text('DBSIZE')).toBe(':1');
      reader.close();
      const q = encodeURIComponent('SELECT v FROM m');
      const points = await fetch(`${target.influx}/query?db=d&u=${name}&p=${password}&q=${q}`);
      expect(await points.text()).toContain('["1970-01-01T00:00:01Z",1]');
    }
    client.close();
  });
});
