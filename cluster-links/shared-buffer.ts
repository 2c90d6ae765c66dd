// Reads the links of a thread into one buffer.
//
// By default Node allocates 64 KiB for every read and gives each chunk to a stream. `onread` does away with both, but a
// server's sockets cannot be made with it, so an accepted connection is moved to a socket that is. That needs the
// connection's handle, which is not public; where it is not there, the socket is read as usual.

import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { viewed } from '../universal-row/bytes.ts';

type Receive = (chunk: Buffer, length: number) => void;

/** Bytes that are read are processed before the next read, of whichever link. */
const buffer = viewed(Buffer.allocUnsafeSlow(64 * 1024));

/** Options of a socket whose input goes to `receive`, which must not keep the chunk. */
export function sharedReads(receive: Receive): SocketConstructorOpts & { onread: OnReadOpts } {
  return {
    onread: {
      buffer,
      callback: (length) => {
        receive(buffer, length);
        return true;
      },
    },
  };
}

/**
 * Moves a server's plain connection, in a call that brings input of it, to a socket whose further input goes to `receive`.
 * Returns the socket to go on with; the old one is destroyed behind that, as the server counts it.
 */
export function moveToSharedReads(accepted: Socket, receive: Receive): Socket {
  const source = accepted as unknown as { _handle?: object | null };
  const handle = source._handle;
  if (handle === undefined || handle === null) {
    accepted.on('data', (chunk: Buffer) => receive(viewed(chunk), chunk.length));
    return accepted;
  }
  source._handle = null;
  const options: SocketConstructorOpts & { handle: object } = { handle, ...sharedReads(receive) };
  const socket = new Socket(options);
  socket.once('close', () => accepted.destroy());
  return socket;
}
