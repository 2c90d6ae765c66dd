// Requests of HTTP clients of a demonstration: points as agents send them, and queries as dashboards ask them.

import { request } from 'node:http';
import type { HttpRequest, Target } from './load/load-messages.ts';

const database = 'demo';
const bodiesOfEach = 4;

/** A body of a point of each of so many hosts; the server says when they are from, so that it can be sent again. */
export function writeOf(hosts: number): HttpRequest[] {
  return Array.from({ length: bodiesOfEach }, (_, n) => {
    const lines = Array.from({ length: hosts }, (_point, i) => pointOf(i, (i * 37 + n) % 100));
    return { method: 'POST', path: `/write?db=${database}`, body: lines.join('\n') };
  });
}

function pointOf(host: number, usage: number, time = ''): string {
  return `cpu,host=host-${host},region=eu usage=${usage}.5${time}`;
}

export function queryOf(text: string): HttpRequest {
  return {
    method: 'GET',
    path: `/query?${new URLSearchParams({ db: database, q: text }).toString()}`,
  };
}

/** So many points of each of so many hosts, ten seconds apart, up to now. */
export function history(hosts: number, points: number): HttpRequest[] {
  const newest = Math.floor(Date.now() / 10_000) * 10;
  const perBody = Math.max(1, Math.floor(10_000 / hosts));
  const requests: HttpRequest[] = [];
  for (let from = 0; from < points; from += perBody) {
    const lines: string[] = [];
    for (let p = from; p < Math.min(points, from + perBody); p++) {
      const time = ` ${newest - 10 * (points - p)}`;
      for (let host = 0; host < hosts; host++) lines.push(pointOf(host, (host + p) % 100, time));
    }
    const path = `/write?db=${database}&precision=s`;
    requests.push({ method: 'POST', path, body: lines.join('\n') });
  }
  return requests;
}

/** One after the other; throws when one fails. */
export async function sendAll(target: Target, requests: readonly HttpRequest[]): Promise<void> {
  for (const one of requests) await send(target, one);
}

/** An empty one. */
export async function newDatabase(target: Target): Promise<void> {
  for (const q of [`DROP DATABASE ${database}`, `CREATE DATABASE ${database}`]) {
    await send(target, { method: 'POST', path: `/query?${new URLSearchParams({ q }).toString()}` });
  }
}

function send(
  { port, name, password }: Target,
  { method, path, body }: HttpRequest,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const auth = `${name}:${password}`;
    const sent = request({ host: '127.0.0.1', port, method, path, auth }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('error', reject);
      response.on('end', () => {
        const isFine = (response.statusCode ?? 500) < 300 && !text.includes('"error"');
        if (isFine) resolve();
        else reject(new Error(`${path}: ${response.statusCode} ${text}`));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
