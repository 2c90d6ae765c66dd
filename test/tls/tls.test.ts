// TLS as clients meet it: redis-cli, curl, ioredis and our own command, against a whole server.

import { execFile } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isBuilt, polyrow } from '../cli/polyrow-process.ts';
import { Polyrow, StartError } from '../support/polyrow.ts';
import { Authority, hasOpenssl, type IssuedCertificate } from './certificates.ts';
import { until } from '../support/until.ts';
import { freePort } from '../support/free-port.ts';

const run = promisify(execFile);
const canRun = isBuilt && hasOpenssl;

let authority: Authority;
let first: IssuedCertificate;
let server: Polyrow | undefined;
let files: string[];

beforeAll(() => {
  if (!canRun) return;
  authority = new Authority();
  first = authority.issue('first');
  files = ['--tls.cert-file', path('server.pem'), '--tls.key-file', path('server.key')];
});
afterAll(() => authority?.remove());
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

function path(name: string): string {
  return join(authority.folder, name);
}

function install(certificate: IssuedCertificate): void {
  copyFileSync(certificate.keyFile, path('server.key'));
  copyFileSync(certificate.certificateFile, path('server.pem'));
}

async function start(...flags: string[]): Promise<Polyrow> {
  install(first);
  server = await Polyrow.start({ flags: [...files, ...flags] });
  return server;
}

/** Standard output of a program, or what it said when it failed. */
async function output(program: string, ...words: string[]): Promise<string> {
  try {
    return (await run(program, words, { timeout: 20_000 })).stdout.trim();
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string };
    if (code === 'ENOENT') throw error;
    return `failed: ${stdout}${stderr}`.trim();
  }
}

function redisCli(port: number, ...words: string[]): Promise<string> {
  const where = ['-h', '127.0.0.1', '-p', String(port), '--tls'];
  return output('redis-cli', ...where, '--cacert', authority.certificateFile, ...words);
}

function curl(url: string, ...words: string[]): Promise<string> {
  return output('curl', '-sS', '--cacert', authority.certificateFile, ...words, url);
}

function servedAs(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ca: authority.certificate }, () => {
      const { subject } = socket.getPeerCertificate() as PeerCertificate;
      socket.destroy();
      resolve(String(subject.CN));
    });
    socket.on('error', reject);
  });
}

describe.skipIf(!canRun)('TLS', () => {
  test('serves every listener', async () => {
    const { redisPort, influx, admin, dataDir } = await start(
      ...['--redis.tls', 'on', '--influx.tls', 'on', '--admin.tls', 'on'],
    );
    expect([influx, admin]).toEqual([
      expect.stringMatching(/^https:/),
      expect.stringMatching(/^https:/),
    ]);
    expect(await redisCli(redisPort, 'SET', 'k', 'v')).toBe('OK');
    expect(await redisCli(redisPort, 'GET', 'k')).toBe('v');
    await curl(`${influx}/query`, '--data-urlencode', 'q=CREATE DATABASE d');
    expect(await curl(`${influx}/write?db=d`, '--data-binary', 'm v=1 1')).toBe('');
    expect(await curl(`${influx}/query?db=d&q=SELECT+v+FROM+m`)).toContain('"values":[[');
    expect(await curl(`${admin}/readyz`)).toBe('{"status":"ready"}');
    // The command knows its server by what is in the data directory.
    const list = await polyrow(['table', 'list', '--json', '--data-dir', dataDir]);
    expect([list.code, list.err]).toEqual([0, '']);
    // Clients without the authority do not trust the certificate.
    expect(await output('curl', '-sS', `${admin}/readyz`)).toMatch(/^failed: .*certificate/s);
    // Plain clients get nothing.
    const plain = await output('redis-cli', '-p', String(redisPort), 'PING');
    expect(plain).toMatch(/closed|reset|failed/i);
  });

  test('serves Redis plain and encrypted at once', async () => {
    const tlsPort = await freePort();
    const { redisPort, output: printed } = await start('--redis.tls-port', String(tlsPort));
    expect(printed).toContain(`tls    rediss://127.0.0.1:${tlsPort}\n`);
    expect(await output('redis-cli', '-p', String(redisPort), 'SET', 'k', 'both')).toBe('OK');
    expect(await redisCli(tlsPort, 'GET', 'k')).toBe('both');
    expect(await redisCli(tlsPort, 'CONFIG', 'GET', 'tls-port')).toBe(`tls-port\n${tlsPort}`);
  });

  test('carries long pipelines and large values of ioredis', async () => {
    const { redisPort } = await start('--redis.tls', 'on');
    const client = new Redis({ port: redisPort, tls: { ca: authority.certificate } });
    try {
      const large = 'x'.repeat(3_000_000);
      await client.set('large', large);
      const pipeline = client.pipeline();
      for (let i = 0; i < 5000; i++) pipeline.set(`k${i}`, `v${i}`).get(`k${i}`);
      for (let i = 0; i < 10; i++) pipeline.get('large');
      const answers = (await pipeline.exec())!;
      expect(answers).toHaveLength(10_010);
      for (let i = 0; i < 5000; i++) expect(answers[2 * i + 1]).toEqual([null, `v${i}`]);
      expect(answers.slice(10_000).every(([, value]) => value === large)).toBe(true);
      expect(await client.client('LIST')).toContain('cmd=client|list');
    } finally {
      client.disconnect();
    }
  });

  test('lets in only who shows a certificate, where one is required', async () => {
    const flags = ['--tls.client-auth', 'require', '--tls.ca-file', authority.certificateFile];
    const { redisPort, influx, admin, dataDir } = await start(
      ...['--redis.tls', 'on', '--influx.tls', 'on', '--admin.tls', 'on', ...flags],
    );
    const { certificateFile: cert, keyFile: key } = authority.issue('client');
    expect(await redisCli(redisPort, 'PING')).not.toContain('PONG');
    expect(await redisCli(redisPort, '--cert', cert, '--key', key, 'PING')).toBe('PONG');
    expect(await curl(`${influx}/ping`)).toMatch(/^failed/);
    expect(await curl(`${influx}/ping`, '--cert', cert, '--key', key)).toBe('');
    expect(await curl(`${admin}/readyz`, '--cert', cert, '--key', key)).toContain('ready');
    const ask = (...more: string[]) => polyrow(['table', 'list', '--data-dir', dataDir, ...more]);
    expect((await ask('--client-cert-file', cert, '--client-key-file', key)).code).toBe(0);
    expect((await ask()).code).toBe(6);
  });

  test('takes on a new certificate while clients stay connected', async () => {
    const { redisPort, influx, admin, pid } = await start(
      ...['--redis.tls', 'on', '--influx.tls', 'on', '--admin.tls', 'on'],
    );
    const ports = [redisPort, Number(new URL(influx).port), Number(new URL(admin).port)];
    const served = () => Promise.all(ports.map(servedAs));
    // Each thread takes on the files by itself, so that one may be ahead of another.
    const allServe = (name: string) =>
      until(async () => (await served()).every((served) => served === name));
    const client = new Redis({ port: redisPort, tls: { ca: authority.certificate } });
    let ends = 0;
    client.on('close', () => ends++);
    try {
      await client.set('k', '1');
      expect(await served()).toEqual(['first', 'first', 'first']);

      install(authority.issue('second'));
      await allServe('second');

      // A certificate without its key, another's key, one that has expired: all stay outside.
      writeFileSync(path('server.pem'), 'nonsense');
      process.kill(pid, 'SIGHUP');
      await until(() => /stays as it was: .*tls\.cert-file\) is no certi/.test(said()));
      copyFileSync(authority.issue('third').certificateFile, path('server.pem'));
      process.kill(pid, 'SIGHUP');
      await until(() => /stays as it was: .*is not the key of/.test(said()));
      install(authority.issue('expired', -1));
      process.kill(pid, 'SIGHUP');
      await until(() => /stays as it was: .*has expired/.test(said()));
      expect(await served()).toEqual(['second', 'second', 'second']);

      install(authority.issue('fourth'));
      process.kill(pid, 'SIGHUP');
      await allServe('fourth');
      expect(await client.incr('k')).toBe(2);
      expect(ends).toBe(0);
    } finally {
      client.disconnect();
    }
  });

  test('does not start on files it cannot serve with, and says which', async () => {
    const check = async (message: RegExp, ...flags: string[]) => {
      const error = await Polyrow.start({ flags }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(StartError);
      expect((error as StartError).output).toMatch(message);
    };
    const on = ['--redis.tls', 'on'];
    await check(/redis\.tls \(flag --redis\.tls\) needs tls\.cert-file/, ...on);
    const none = ['--tls.cert-file', path('none.pem'), '--tls.key-file', first.keyFile];
    await check(/cannot read .*none\.pem \(tls\.cert-file\)/, ...on, ...none);
    const other = authority.issue('other');
    const mixed = ['--tls.cert-file', first.certificateFile, '--tls.key-file', other.keyFile];
    await check(/\(tls\.key-file\) is not the key of .*\(tls\.cert-file\)/, ...on, ...mixed);
    await check(/tls\.client-auth require .* needs tls\.ca-file/, '--tls.client-auth', 'require');
  });
});

function said(): string {
  return server!.lifeOutput;
}
