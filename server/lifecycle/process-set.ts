// A server of several processes (`polyrow start --processes`). The first process holds the listening sockets. Each
// other process is a node of a cluster that these processes form, and accepts connections from the same sockets.

import { lookup } from 'node:dns/promises';
import net from 'node:net';
import { getSystemErrorName } from 'node:util';

/** Listening sockets, as descriptors of this process. */
export interface SharedSockets {
  readonly redis: number;
  /** Port for TLS beside the ordinary one. */
  readonly redisTls?: number | undefined;
  readonly influx: number;
  readonly admin: number;
}

/** Settings that a process of such a server receives at its start. */
export interface ProcessSet {
  readonly processes: number;
  /** Whether this process forms the cluster, if that is not done yet. */
  readonly forms: boolean;
  readonly sockets: SharedSockets;
}

/** Directory of the processes' directories in a data directory. */
export const processesDirectory = 'processes';

/** A bound handle; a process that inherits its descriptor can listen on it. */
export interface BoundSocket {
  readonly fd: number;
  readonly port: number;
  close(): void;
}

interface TcpHandle {
  fd: number;
  /** 0, or an error as a negative number. */
  getsockname(into: { port?: number }): number;
  close(): void;
}

/** As Node's own cluster module makes the sockets that its workers share; a `Server` would accept connections itself. */
const internals = net as unknown as {
  _createServerHandle(
    address: string,
    port: number,
    family: 4 | 6,
    fd: undefined,
    flags: number,
  ): TcpHandle | number;
};

/** Binds a socket that does not listen yet; port 0 is a free one. Rejects with the error of the system. */
export async function bindSocket(host: string, port: number): Promise<BoundSocket> {
  const { address, family } = await lookup(host);
  const handle = internals._createServerHandle(address, port, family === 6 ? 6 : 4, undefined, 0);
  if (typeof handle === 'number') throw systemError(handle, 'bind');
  const name: { port?: number } = {};
  // An address in use is told only now.
  const failure = handle.getsockname(name);
  if (failure !== 0) {
    handle.close();
    throw systemError(failure, 'bind');
  }
  return { fd: handle.fd, port: name.port!, close: () => handle.close() };
}

function systemError(number: number, what: string): Error {
  const code = getSystemErrorName(number);
  return Object.assign(new Error(`${what} ${code}`), { code });
}
