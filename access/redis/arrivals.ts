// Connections that have been accepted, and are no sockets yet.
//
// The system hands over all connections that wait in one step, however many they are, and Node would make a socket of
// each at once. So what a listener hands over waits as a handle, and becomes a socket when it is served. The handle is not
// public; where it is not there, and for TLS, sockets come as usual.

import { type Server, Socket } from 'node:net';

/** A connection's handle within Node. */
export class AcceptedHandle {
  readonly handle: object;

  constructor(handle: object) {
    this.handle = handle;
  }
}

export type Arrival = Socket | AcceptedHandle;

type OnConnection = (this: unknown, error: number, client: object | undefined) => void;

interface WithHandle {
  _handle?: { onconnection?: OnConnection } | null;
}

/** From now on what a listening server accepts is given to `accept` without a socket. False where that cannot be had. */
export function acceptHandles(server: Server, accept: (arrival: Arrival) => void): boolean {
  const listening = (server as unknown as WithHandle)._handle;
  const usual = listening?.onconnection;
  if (listening === undefined || listening === null || typeof usual !== 'function') return false;
  listening.onconnection = function (error, client) {
    if (error !== 0 || client === undefined) usual.call(this, error, client);
    else accept(new AcceptedHandle(client));
  };
  return true;
}

/** An ordinary socket, for a connection that is not served. */
export function socketOf(arrival: Arrival): Socket {
  if (arrival instanceof Socket) return arrival;
  return new Socket({ handle: arrival.handle } as ConstructorParameters<typeof Socket>[0]);
}
