// Reads all connections of a thread into one buffer.
//
// By default Node allocates 64 KiB for every read and gives each chunk to a stream. `onread` does away
// with both, but a server's sockets cannot be made with it, so an accepted connection is moved to a
// socket that is: about a tenth more commands a second, and no memory for idle clients. The move needs
// the socket's handle, which is not public; where it is not there, and for TLS, the ordinary way works as well.

import { Socket, type OnReadOpts, type SocketConstructorOpts } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { viewed } from '../../universal-row/bytes.ts';

const buffer = viewed(Buffer.allocUnsafeSlow(64 * 1024));

type WithHandle = { _handle?: unknown };

/**
 * Calls `receive` with what arrives, the first `length` bytes of a buffer that is valid only during the
 * call, and returns the socket to go on with. The socket given must have been accepted with `pauseOnConnect`.
 */
export function readShared(
  accepted: Socket,
  receive: (chunk: Buffer, length: number) => void,
): Socket {
  const source = accepted as unknown as WithHandle;
  const handle = source._handle;
  // What a TLS socket reads is not what its handle does.
  const isEncrypted = (accepted as Partial<TLSSocket>).encrypted === true;
  if (isEncrypted || handle === undefined || handle === null) {
    accepted.on('data', (chunk: Buffer) => receive(chunk, chunk.length));
    return accepted;
  }
  const onread: OnReadOpts = {
    buffer,
    callback(bytes) {
      receive(buffer, bytes);
      return true;
    },
  };
  source._handle = null;
  const options: SocketConstructorOpts & { handle: unknown; onread: OnReadOpts } = {
    handle,
    onread,
  };
  return new Socket(options);
}
