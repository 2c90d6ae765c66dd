// Accepted connections that are not sockets yet.
//
// The system hands over all waiting connections in one step, and Node would create a socket for each of them at once. Here
// each connection waits as a handle, and becomes a socket when it is served. The handle is not public; where it is
// missing, Node creates the sockets. TLS and HTTP servers create their own sockets, a few in each round.

import { type Server, Socket } from 'node:net';
import { AcceptQueue } from './accept-queue.ts';

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

/** Passes accepted connections of a listening server to `accept`, as handles if Node permits, else as sockets. */
export function acceptHandles(server: Server, accept: (arrival: Arrival) => void): void {
  takeOver(server, (client) => accept(new AcceptedHandle(client)));
}

/** The same for a server that makes its sockets by itself: it makes some in each round of the event loop. */
export function acceptInSlices(server: Server): void {
  const queue = new AcceptQueue<() => void>((make) => make());
  takeOver(server, (client, make) =>
    queue.add(() => {
      // A stopped server has closed only the connections that it knows, so this one is closed here.
      if (server.listening) make();
      else (client as { close(): void }).close();
    }),
  );
}

function takeOver(server: Server, accept: (client: object, make: () => void) => void): void {
  const listening = (server as unknown as WithHandle)._handle;
  const usual = listening?.onconnection;
  if (listening === undefined || listening === null || typeof usual !== 'function') return;
  listening.onconnection = function (error, client) {
    if (error !== 0 || client === undefined) usual.call(this, error, client);
    else accept(client, () => usual.call(this, 0, client));
  };
}

/** An ordinary socket, for a connection that is not served. */
export function socketOf(arrival: Arrival): Socket {
  if (arrival instanceof Socket) return arrival;
  return new Socket({ handle: arrival.handle } as ConstructorParameters<typeof Socket>[0]);
}
