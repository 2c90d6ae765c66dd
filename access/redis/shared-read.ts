// Reads all connections of a thread into one buffer.
//
// By default Node allocates 64 KiB for every read and gives each chunk to a stream. `onread` does away
// with both, but a server's sockets cannot be made with it, so an accepted connection is moved to a
// socket that is: about a tenth more commands a second, and no memory for idle clients. That needs
// the connection's handle, which is not public; where it is not there, and for TLS, the ordinary way works as well.

import { Socket, type OnReadOpts, type SocketConstructorOpts } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { viewed } from '../../universal-row/bytes.ts';
import { EndedInputs } from '../gateway/ended-inputs.ts';
import { AcceptedHandle, type Arrival } from '../gateway/accepted-handles.ts';

const buffer = viewed(Buffer.allocUnsafeSlow(64 * 1024));
/**
 * Buffer for throttled clients: their input is read in small pieces that do not delay other
 * clients.
 */
const smallBuffer = viewed(buffer.subarray(0, 16 * 1024));

/** Of this thread. */
const endedInputs = new EndedInputs();

type WithHandle = { _handle?: unknown };

export interface Reader {
  /** Receives input: the first `length` bytes of a buffer that is valid only during the call. */
  receive(chunk: Buffer, length: number): void;
  /** Its client cannot be served now: then little is read at a time. Asked after each read. */
  readonly isHeldBack: boolean;
}

/** Returns the socket to go on with. A socket given must have been accepted with `pauseOnConnect`. */
export function readShared(accepted: Arrival, reader: Reader): Socket {
  if (accepted instanceof AcceptedHandle) return onHandle(accepted.handle, reader);
  const source = accepted as unknown as WithHandle;
  const handle = source._handle;
  // A TLS socket's reads differ from those of its handle.
  const isEncrypted = (accepted as Partial<TLSSocket>).encrypted === true;
  if (isEncrypted || handle === undefined || handle === null) {
    accepted.on('data', (chunk: Buffer) => reader.receive(chunk, chunk.length));
    return accepted;
  }
  source._handle = null;
  return onHandle(handle as object, reader);
}

function onHandle(handle: object, reader: Reader): Socket {
  let next: Buffer | undefined;
  const onread: OnReadOpts = {
    // For the next read. Undefined leaves it as it is, which saves a call into native code each time.
    buffer: () => {
      const wanted = reader.isHeldBack ? smallBuffer : buffer;
      if (wanted === next) return undefined as unknown as Buffer;
      return (next = wanted);
    },
    callback(bytes) {
      // The small one is where the large one begins.
      reader.receive(buffer, bytes);
      return true;
    },
  };
  const options: SocketConstructorOpts & { handle: unknown; onread: OnReadOpts } = {
    handle,
    onread,
  };
  const socket = new Socket(options);
  endedInputs.follow(socket);
  return socket;
}
