// What the planes have in common: how they report, and what they say when they cannot listen.

import type { MessagePort } from 'node:worker_threads';
import { report } from './plane-port.ts';

export type PlaneLog = (level: 'info' | 'warn' | 'error', msg: string, fields?: object) => void;

export function planeLog(port: MessagePort): PlaneLog {
  return (level, msg, fields) => report(port, { type: 'log', level, msg, fields: plain(fields) });
}

/** Fields as data that can be sent: an error becomes its text. */
function plain(fields: object | undefined): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields ?? {})) {
    result[name] = value instanceof Error ? (value.stack ?? value.message) : value;
  }
  return result;
}

/** Reports that the plane cannot go on. */
export function planeFatal(port: MessagePort): (error: unknown) => void {
  return (error) => {
    report(port, {
      type: 'fatal',
      message: error instanceof Error ? error.message : String(error),
    });
  };
}

/** A host as it stands in a URL. */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** `listen`, with an error for people when the address is not to be had. `protocol` is that of its settings. */
export async function listening(
  protocol: 'redis' | 'influx',
  host: string,
  port: number,
  listen: () => Promise<unknown>,
): Promise<void> {
  try {
    await listen();
  } catch (error) {
    throw new Error(listenError(protocol, `${host}:${port}`, error), { cause: error });
  }
}

function listenError(protocol: string, where: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return `${protocol}: ${where} is in use by another process; choose another with --${protocol}.port`;
  }
  if (code === 'EACCES') {
    return `${protocol}: may not listen on ${where}; choose another --${protocol}.port`;
  }
  return `${protocol}: cannot listen on ${where}: ${message}`;
}
