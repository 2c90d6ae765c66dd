import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { get } from 'node:https';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Authority, hasOpenssl, type IssuedCertificate } from '../../test/tls/certificates.ts';
import { TlsListeners, type HandshakeLimits, type TlsMaterial } from './tls-context.ts';

let authority: Authority;
let server: IssuedCertificate;
const open: { close(): unknown }[] = [];

beforeAll(() => {
  if (!hasOpenssl) return;
  authority = new Authority();
  server = authority.issue('server');
});
afterAll(() => authority?.remove());
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

function material(change: Partial<TlsMaterial> = {}): TlsMaterial {
  return {
    certificate: server.certificate,
    key: server.key,
    authorities: authority.certificate,
    clientAuth: 'no',
    minVersion: 'TLSv1.2',
    ...change,
  };
}

/** A listener that says hello, and its port. */
async function listen(
  change: Partial<TlsMaterial> = {},
  limits: Partial<HandshakeLimits> = {},
): Promise<{ listeners: TlsListeners; port: number }> {
  const listeners = new TlsListeners(material(change), limits);
  const listener = listeners.createServer((socket) => {
    socket.on('error', () => {});
    socket.write('hello');
    socket.on('data', (chunk) => socket.write(chunk));
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  open.push(listener);
  return { listeners, port: (listener.address() as AddressInfo).port };
}

function client(port: number, options: ConnectionOptions = {}): TLSSocket {
  const socket = connectTls({ port, host: '127.0.0.1', ca: authority.certificate, ...options });
  socket.on('error', () => {});
  open.push({ close: () => socket.destroy() });
  return socket;
}

/** The server's greeting, or `closed`. */
function greeting(socket: TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (chunk) => resolve(String(chunk)));
    socket.once('close', () => resolve('closed'));
  });
}

function commonName(socket: TLSSocket): string {
  return socket.getPeerCertificate().subject.CN as string;
}

function plain(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  open.push({ close: () => socket.destroy() });
  return socket;
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

describe.skipIf(!hasOpenssl)('a TLS listener', () => {
  test('asks for certificates as it is told', async () => {
    const stranger = new Authority('Stranger');
    open.push({ close: () => stranger.remove() });
    const own = authority.issue('client');
    const foreign = stranger.issue('client');
    const none = {};
    const good = { cert: own.certificate, key: own.key };
    const bad = { cert: foreign.certificate, key: foreign.key };
    const check = async (
      clientAuth: TlsMaterial['clientAuth'],
      shown: ConnectionOptions,
      expected: string,
    ) => {
      const { port } = await listen({ clientAuth });
      expect(await greeting(client(port, shown)), clientAuth).toBe(expected);
    };
    await check('no', none, 'hello');
    await check('no', bad, 'hello');
    await check('optional', none, 'hello');
    await check('optional', good, 'hello');
    await check('optional', bad, 'closed');
    await check('require', none, 'closed');
    await check('require', good, 'hello');
    await check('require', bad, 'closed');
  });

  test('speaks no version older than it is told', async () => {
    const check = async (minVersion: TlsMaterial['minVersion'], expected: string) => {
      const { port } = await listen({ minVersion });
      expect(await greeting(client(port, { maxVersion: 'TLSv1.2' })), minVersion).toBe(expected);
    };
    await check('TLSv1.2', 'hello');
    await check('TLSv1.3', 'closed');
  });

  test('takes a new certificate and keeps its clients', async () => {
    const { listeners, port } = await listen();
    const before = client(port);
    expect(await greeting(before)).toBe('hello');
    const next = authority.issue('next');
    listeners.renew(material({ certificate: next.certificate, key: next.key }));
    const after = client(port);
    expect(await greeting(after)).toBe('hello');
    expect([commonName(before), commonName(after)]).toEqual(['server', 'next']);
    before.write('still here');
    expect(await greeting(before)).toBe('still here');
  });

  test('keeps the old certificate when a new one cannot be used', async () => {
    const { listeners, port } = await listen();
    const next = authority.issue('next');
    expect(() => listeners.renew(material({ certificate: next.certificate }))).toThrow();
    const socket = client(port);
    expect(await greeting(socket)).toBe('hello');
    expect(commonName(socket)).toBe('server');
  });

  test('closes who does not finish a handshake', async () => {
    const { port } = await listen({}, { timeoutMs: 100 });
    const silent = plain(port);
    await closed(silent);
    const rude = plain(port);
    rude.write('PING\r\n');
    await closed(rude);
    expect(await greeting(client(port))).toBe('hello');
  });

  test('has the oldest of too many handshakes give way to a new one', async () => {
    const { port } = await listen({}, { maxPending: 3 });
    const done = [client(port), client(port)];
    for (const socket of done) expect(await greeting(socket)).toBe('hello');
    const silent = [plain(port), plain(port), plain(port)];
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    const replaced = closed(silent[0]!);
    expect(await greeting(client(port))).toBe('hello');
    await replaced;
    // The handshake is complete, so there is room for the next one.
    expect(await greeting(client(port))).toBe('hello');
    expect(silent.slice(1).map((socket) => socket.closed)).toEqual([false, false]);
    for (const socket of done) {
      socket.write('still here');
      expect(await greeting(socket)).toBe('still here');
    }
  });

  test('serves HTTPS by the same rules', async () => {
    const listeners = new TlsListeners(material({ clientAuth: 'optional' }));
    const http = listeners.createHttpServer({}, (_request, response) => response.end('hello'));
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    open.push(http);
    const { port } = http.address() as AddressInfo;
    const ask = (options: ConnectionOptions) =>
      new Promise<number | string>((resolve) => {
        const all = { port, host: '127.0.0.1', ca: authority.certificate, ...options };
        get(all, (response) => {
          response.resume();
          resolve(response.statusCode!);
        }).on('error', () => resolve('closed'));
      });
    const stranger = new Authority('Stranger');
    open.push({ close: () => stranger.remove() });
    const { certificate: cert, key } = stranger.issue('client');
    expect(await ask({ agent: false } as ConnectionOptions)).toBe(200);
    expect(await ask({ cert, key, agent: false } as ConnectionOptions)).toBe('closed');
  });
});
