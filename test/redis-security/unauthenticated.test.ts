// Connections that never log in: they are closed in time, and do not keep others out.

import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { TenantsServer, type TenantsServerOptions } from '../redis-tenants/tenants-server.ts';

let server: TenantsServer;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.stop();
});

async function start(options: TenantsServerOptions): Promise<void> {
  server = await TenantsServer.start({ defaultPassword: 'secret', ...options });
}

/** A client that says nothing. */
async function silent(localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port: server.redis.port, host: '127.0.0.1', localAddress });
  sockets.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

function lastWords(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk)));
  return new Promise((resolve) => socket.once('close', () => resolve(text)));
}

describe('the login deadline', () => {
  test('closes a connection that has not logged in, and no other', async () => {
    await start({ loginTimeoutMs: 500 });
    const user = await server.client();
    expect(await user.text('AUTH', 'secret')).toBe('+OK');
    expect(await lastWords(await silent())).toBe('-ERR login timeout\r\n');
    const chatty = await silent();
    const words = lastWords(chatty);
    chatty.write('PING\r\n');
    expect(await words).toContain('-ERR login timeout\r\n');
    expect(await user.text('PING')).toBe('+PONG');
    expect(server.redis.logins.timeouts).toBe(2);
    // RESET takes the login back.
    await user.command('RESET');
    await user.ended;
  });

  test('is none where nobody has to log in', async () => {
    server = await TenantsServer.start({ loginTimeoutMs: 1 });
    const client = await server.client();
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(await client.text('PING')).toBe('+PONG');
  });
});

describe('connections that do not log in', () => {
  test('hold half of maxclients at most, and the newest may log in', async () => {
    await start({ maxClients: 8 });
    const users = [];
    for (let i = 0; i < 4; i++) {
      for (let k = 0; k < 10; k++) await silent();
      const user = await server.client();
      expect(await user.text('AUTH', 'secret')).toBe('+OK');
      users.push(user);
    }
    expect(server.redis.connections.size).toBeLessThanOrEqual(8);
    for (const user of users) expect(await user.text('PING')).toBe('+PONG');
    expect(server.redis.logins.replaced).toBeGreaterThan(30);
  });

  test('of one address give way before those of others', async () => {
    await start({ maxClients: 8 });
    const slow = await silent('127.0.0.2');
    for (let k = 0; k < 20; k++) await silent();
    const reply = once(slow, 'data');
    slow.write('AUTH secret\r\n');
    expect(String((await reply)[0])).toBe('+OK\r\n');
  });
});
