import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { BrowserGuard, refuseForeignPages } from './browser-guard.ts';

const request = (headers: Record<string, string>, method = 'POST'): IncomingMessage =>
  ({ headers, method }) as unknown as IncomingMessage;

describe('names', () => {
  const check = (host: string, asked: string | undefined, allowedHosts: string[] = []): boolean => {
    try {
      new BrowserGuard({ host, allowedHosts }).checkHost(
        request(asked === undefined ? {} : { host: asked }),
      );
      return true;
    } catch (error) {
      expect(error).toMatchObject({ status: 403 });
      return false;
    }
  };

  test.each([
    'localhost',
    'LOCALHOST:8086',
    'localhost.',
    'db.localhost:1',
    '127.0.0.1:8086',
    '127.1.2.3',
    '[::1]:8086',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]:8086',
    undefined,
  ])('on loopback: %s', (name) => {
    expect(check('127.0.0.1', name)).toBe(true);
    expect(check('::1', name)).toBe(true);
    expect(check('localhost', name)).toBe(true);
  });

  test.each([
    'evil.example',
    'evil.example:8086',
    '10.0.0.1',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'notlocalhost',
    '[::2]',
    '[::ffff:10.0.0.1]',
    '127.0.0.1@evil.example',
    '',
  ])('not on loopback: %s', (name) => {
    expect(check('127.0.0.1', name)).toBe(false);
    expect(check('::1', name)).toBe(false);
  });

  test('that are allowed, in addition', () => {
    expect(check('127.0.0.1', 'Influx.Example:443', ['influx.example'])).toBe(true);
    expect(check('127.0.0.1', 'localhost', ['influx.example'])).toBe(true);
    expect(check('127.0.0.1', 'evil.example', ['influx.example'])).toBe(false);
  });

  test('elsewhere, where none are allowed by name', () => {
    expect(check('0.0.0.0', 'any.example')).toBe(true);
    expect(check('0.0.0.0', 'any.example', ['influx.example'])).toBe(false);
    expect(check('10.0.0.7', '10.0.0.7:8086', ['influx.example'])).toBe(true);
  });
});

describe('what has effects', () => {
  const isDone = (headers: Record<string, string>, method?: string): boolean => {
    try {
      refuseForeignPages(request({ host: 'localhost:8086', ...headers }, method));
      return true;
    } catch (error) {
      expect(error).toMatchObject({ status: 403 });
      return false;
    }
  };
  const mozilla = { 'user-agent': 'Mozilla/5.0' };

  test.each<[Record<string, string>, string?]>([
    [{}],
    [{}, 'GET'],
    [{ 'user-agent': 'Go-http-client/1.1' }, 'GET'],
    [{ origin: 'http://localhost:8086' }],
    [{ origin: 'https://LOCALHOST:8086', ...mozilla }, 'GET'],
    [{ 'sec-fetch-site': 'same-origin', ...mozilla }, 'GET'],
    [{ 'sec-fetch-site': 'none', ...mozilla }, 'GET'],
    [mozilla],
  ])('is done for %j %s', (headers, method) => {
    expect(isDone(headers, method)).toBe(true);
  });

  test.each<[Record<string, string>, string?]>([
    [{ origin: 'http://evil.example' }],
    [{ origin: 'http://localhost:8087' }],
    [{ origin: 'http://localhost' }],
    [{ origin: 'null' }],
    [{ origin: '' }],
    [{ origin: 'http://evil.example/http://localhost:8086' }],
    [{ 'sec-fetch-site': 'cross-site' }, 'GET'],
    [{ 'sec-fetch-site': 'same-site' }],
    [mozilla, 'GET'],
  ])('is not done for %j %s', (headers, method) => {
    expect(isDone(headers, method)).toBe(false);
  });
});
