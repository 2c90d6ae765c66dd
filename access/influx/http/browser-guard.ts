// Protects against web pages. A page in a browser on this machine, or in its network, can make the
// browser send requests here. With a domain of its own that resolves to this address (DNS
// rebinding) it could even read the answers: so a listener on loopback answers only to names that a
// foreign page cannot have. Under our names it cannot read answers, as no CORS header permits it,
// but could cause changes: so requests with effects are refused for pages of any other origin.

import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';
import { HttpError } from './http-error.ts';

interface BrowserGuardOptions {
  /** Where the server listens: a name or an address. */
  readonly host: string;
  /** Further names that clients know it by. */
  readonly allowedHosts: readonly string[];
}

export class BrowserGuard {
  /** undefined where any name will do. */
  readonly #names: ReadonlySet<string> | undefined;

  constructor({ host, allowedHosts }: BrowserGuardOptions) {
    const name = nameOf(host.includes(':') ? `[${host.replace(/^\[|\]$/g, '')}]` : host);
    const isChecked = isLoopback(name) || allowedHosts.length > 0;
    this.#names = isChecked ? new Set([name, ...allowedHosts.map(nameOf)]) : undefined;
  }

  /** Throws the `HttpError` for a request that was sent to a name that is not ours. */
  checkHost({ headers }: IncomingMessage): void {
    const { host } = headers;
    // Only clients of HTTP 1.0 leave it out, and no browser is one.
    if (this.#names === undefined || host === undefined) return;
    const name = nameOf(host);
    if (isLoopback(name) || this.#names.has(name)) return;
    throw new HttpError(
      403,
      `not served as ${name.slice(0, 255)}: use localhost, or set influx.allowed-hosts`,
    );
  }
}

/** Throws the `HttpError` for a page of another origin. For requests that have effects. */
export function refuseForeignPages({ headers, method }: IncomingMessage): void {
  const { host = '', origin } = headers;
  const site = headers['sec-fetch-site'];
  const isOwn = origin === undefined ? undefined : originHost(origin) === host.toLowerCase();
  const isForeign = isOwn === false || site === 'cross-site' || site === 'same-site';
  // Older browsers do not say where a GET, as of an image, comes from.
  const isUnknown =
    method !== 'POST' &&
    isOwn === undefined &&
    site === undefined &&
    /^Mozilla\//i.test(headers['user-agent'] ?? '');
  if (!isForeign && !isUnknown) return;
  throw new HttpError(403, 'not done for web pages of another origin');
}

/** `localhost:8086` of `http://localhost:8086`; '' for `null`, and for an invalid origin. */
function originHost(origin: string): string {
  return /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]?.toLowerCase() ?? '';
}

/** Without a port, in small letters. An IPv6 address has brackets. */
function nameOf(host: string): string {
  return host.trim().toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

function isLoopback(name: string): boolean {
  if (name === 'localhost' || name.endsWith('.localhost')) return true;
  if (isIPv4(name)) return name.startsWith('127.');
  return /^\[(0*:)*:?0*1\]$/.test(name) || /^\[(0*:)*:?ffff:127\.\d+\.\d+\.\d+\]$/.test(name);
}
