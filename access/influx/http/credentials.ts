// Credentials claimed by a request. The tenant authenticator verifies them.

import type { IncomingMessage } from 'node:http';
import type { Credentials } from '../tenants/credentials.ts';
import type { Parameters } from './parameters.ts';

/** undefined when the request has none that can be read. Those in the URL go first, as with InfluxDB. */
export function readCredentials(
  request: IncomingMessage,
  parameters: Parameters,
): Credentials | undefined {
  const user = parameters.get('u');
  const password = parameters.get('p');
  if (user !== '' && password !== '') return { kind: 'password', user, password };
  const [scheme, rest] = splitOnce((request.headers.authorization ?? '').trim(), ' ');
  const value = rest?.trim() ?? '';
  if (value === '') return undefined;
  switch (scheme.toLowerCase()) {
    case 'basic':
      return passwordOf(Buffer.from(value, 'base64').toString());
    case 'token':
      return passwordOf(value) ?? { kind: 'token', token: value };
    case 'bearer':
      return { kind: 'token', token: value };
    default:
      return undefined;
  }
}

function passwordOf(text: string): Credentials | undefined {
  const [user, password] = splitOnce(text, ':');
  return password === undefined ? undefined : { kind: 'password', user, password };
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
