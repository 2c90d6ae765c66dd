// Writes to a connection's handle, past its stream.
//
// A socket is a stream: each write makes a record of the stream, a callback for the next tick, and before Node 24.22 a
// request object in native code. Nearly all writes leave in the call that makes them, and need none of that. The handle is not public;
// where it is not as expected, and for TLS, the bytes go through the stream.

import { getSystemErrorName } from 'node:util';
import type { Socket } from 'node:net';
import { copyBytes, viewed } from '../universal-row/bytes.ts';

/** A request to write, as Node makes it. */
interface WriteRequest {
  oncomplete: ((status: number) => void) | undefined;
  /** Bytes that must not change until they are sent. */
  buffer: Buffer | undefined;
  /** From Node 24.22 on: its status if it was complete before the call had returned it, else null. */
  writeStatus?: number | null;
  /** -1 while the request is idle. */
  getAsyncId(): number;
}

type WriteRequestClass = new () => WriteRequest;
/**
 * Returns 0 or an error number. From Node 24.22 on a call without a request returns one if the bytes could not be sent at
 * once.
 */
type WriteBuffer = (request: WriteRequest | null, bytes: Buffer) => number | WriteRequest;

interface Handle {
  writeBuffer: WriteBuffer;
  /** Bytes that are not sent yet. */
  readonly writeQueueSize: number;
}

type WithHandle = { _handle?: Partial<Handle> | null };

/**
 * Class of Node's write requests, or 'none' where a handle makes them by itself. Known once a stream of this thread has
 * written.
 */
let requestClass: WriteRequestClass | 'none' | undefined;
/** An idle request, which the next write uses. */
let spare: WriteRequest | undefined;

const unused = -1;

/** A write of at most this many bytes is copied, which takes less time than creating a view of a buffer. */
const smallBytes = 128;
/** By length: buffers of this thread that small writes are made from. */
const smallBuffers = Array.from({ length: smallBytes + 1 }, (): Buffer | undefined => undefined);

export class DirectWrites {
  /** Bytes of the write in progress, which could not be sent at once. */
  waiting = 0;
  /** Whether the write in progress was copied. */
  isCopied = false;
  #handle: Handle | undefined;
  readonly #socket: Socket;
  readonly #left: () => void;

  /** `left` is called when a write that had to wait has been sent. */
  constructor(socket: Socket, left: () => void) {
    this.#socket = socket;
    this.#left = left;
    const handle = (socket as unknown as WithHandle)._handle;
    if (isUsable(handle)) this.#handle = handle;
  }

  /**
   * Writes a range of a buffer to the handle. False if the caller must use the stream instead. The stream must be empty. While
   * `waiting` counts the bytes they must not change, unless `isCopied`.
   */
  write(from: Buffer, start: number, end: number): boolean {
    const handle = this.#handle;
    if (handle === undefined || this.waiting !== 0) return false;
    if (requestClass === undefined) {
      learnFrom(handle);
      return false;
    }
    if (spare === undefined && requestClass !== 'none') {
      spare = new requestClass();
      if (typeof spare.getAsyncId !== 'function') {
        spare = undefined;
        this.end();
        return false;
      }
    }
    const length = end - start;
    const isSmall = length <= smallBytes;
    const bytes = isSmall ? smallCopy(from, start, length) : from.subarray(start, end);
    const result = handle.writeBuffer(spare ?? null, bytes) as number | WriteRequest | undefined;
    if (result !== 0 && typeof result !== 'object') {
      this.#failed(result);
      return true;
    }
    // The bytes may have left meanwhile, as the peer has read; but that is told later, and the request is in use until then.
    const request = result === 0 ? spare : result;
    if (request !== undefined && (request !== spare || request.getAsyncId() !== unused)) {
      this.#keep(request, bytes);
      this.isCopied = isSmall;
      if (isSmall) smallBuffers[length] = undefined;
    }
    return true;
  }

  /** Ends direct writes: all further bytes go through the stream. */
  end(): void {
    this.#handle = undefined;
  }

  #keep(request: WriteRequest, bytes: Buffer): void {
    spare = undefined;
    this.waiting = bytes.length;
    request.buffer = bytes;
    request.oncomplete = (status) => {
      request.oncomplete = undefined;
      request.buffer = undefined;
      this.waiting = 0;
      if (status < 0) this.#failed(status);
      else this.#left();
    };
    const { writeStatus } = request;
    if (typeof writeStatus === 'number') process.nextTick(() => request.oncomplete?.(writeStatus));
  }

  /** As a stream does after an error. A handle that is closed gives no status. */
  #failed(status: number | undefined): void {
    this.end();
    const why = status === undefined ? 'after the end' : getSystemErrorName(status);
    this.#socket.destroy(new Error(`write ${why}`));
  }
}

function isUsable(handle: Partial<Handle> | null | undefined): handle is Handle {
  return typeof handle?.writeBuffer === 'function' && handle.writeQueueSize === 0;
}

function smallCopy(from: Buffer, start: number, length: number): Buffer {
  const small = (smallBuffers[length] ??= viewed(Buffer.allocUnsafeSlow(length)));
  copyBytes(small, 0, from, start, length);
  return small;
}

/** The stream's next write on this handle tells the class of its request, if it has one. */
function learnFrom(handle: Handle): void {
  const usual = handle.writeBuffer;
  handle.writeBuffer = function (request, bytes) {
    requestClass = request === null ? 'none' : (request.constructor as WriteRequestClass);
    handle.writeBuffer = usual;
    return usual.call(this, request, bytes);
  };
}
