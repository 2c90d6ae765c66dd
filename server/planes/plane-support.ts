// Code shared by the planes: reports, and errors of listening.

import type { MessagePort } from 'node:worker_threads';
import type { TlsListeners, TlsMaterial } from '../../access/gateway/tls-context.ts';
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

/** Reports that the plane cannot continue. */
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

/**
 * `listen`, with a readable error when the address is not available. `protocol` is the prefix of
 * its settings.
 */
export async function listening(
  protocol: 'redis' | 'influx',
  host: string,
  port: number,
  listen: () => Promise<unknown>,
): Promise<void> {
  try {
    await listen();
  } catch (error) {
    // A plane may listen on more than one.
    const failed = (error as { port?: number }).port ?? port;
    const key = failed === port ? `${protocol}.port` : `${protocol}.tls-port`;
    throw new Error(listenError(protocol, `${host}:${failed}`, key, error), { cause: error });
  }
}

function listenError(protocol: string, where: string, key: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return `${protocol}: ${where} is in use by another process; choose another with --${key}`;
  }
  if (code === 'EACCES') {
    return `${protocol}: may not listen on ${where}; choose another --${key}`;
  }
  return `${protocol}: cannot listen on ${where}: ${message}`;
}

/** Loads TLS where it is spoken. */
export async function tlsListeners(
  material: TlsMaterial | undefined,
): Promise<TlsListeners | undefined> {
  if (material === undefined) return undefined;
  const { TlsListeners } = await import('../../access/gateway/tls-context.ts');
  return new TlsListeners(material);
}

/** Handler of calls that only a cluster node supports. */
export function notInCluster(): never {
  throw new Error('this server is not a node of a cluster: it has no cluster.listen');
}
