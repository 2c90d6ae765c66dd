// Bodies of requests, plain or gzip. A small one is collected first: it is unpacked at once off the
// event loop, and no work is begun for a client that may never send the rest. A larger one is
// streamed, with backpressure from its reader to the client.

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip, gunzip } from 'node:zlib';
import { roundHasTime } from '../../../contracts/pod-admission.ts';
import type { BodyMemory } from './exchange-memory.ts';
import { HttpError, MemoryRefusal } from './http-error.ts';

const gunzipWhole = promisify(gunzip);

/** Bodies up to this size on the wire are collected. */
const gatheredBytes = 8 * 1024 * 1024;

/** Unpacked in one piece up to this size. */
const unpackedBytes = 8 * 1024 * 1024;

/** Size of one read of a large compressed body. */
const pieceBytes = 256 * 1024;
/** Memory while unpacking: the current piece, the next one, and zlib's window. */
const unpackingBytes = 2 * pieceBytes + 64 * 1024;

export interface BodyLimits {
  /** Bytes over the wire; 0 for no limit. */
  maxBytes: number;
  /** Bytes when unpacked; 0 for no limit. */
  maxUnpackedBytes: number;
  /** How long a client may send nothing when it is asked for more. */
  idleMs: number;
  onBytes(bytes: number): void;
  /** Account of the body's memory; absent where it is not counted. */
  memory?: BodyMemory | undefined;
  /** Failures take the form of the v2 API. */
  isV2?: boolean;
}

export interface Body {
  /** All of it, in pieces; undefined when it is large. */
  readonly whole: readonly Buffer[] | undefined;
  /** Pieces of a large body. Throws `HttpError` for one that is too large or badly compressed. */
  readonly pieces: AsyncIterable<Buffer>;
}

/** Throws `HttpError`, at once for a body that says itself that it is too large. */
export async function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Body> {
  if (limits.maxBytes > 0 && Number(request.headers['content-length'] ?? 0) > limits.maxBytes) {
    throw tooLarge();
  }
  const raw = received(request, limits);
  const first: Buffer[] = [];
  let size = 0;
  let isComplete = false;
  for (let hasRoom = true; hasRoom && size <= gatheredBytes; ) {
    const { value, done } = await raw.next();
    if (done === true) {
      isComplete = true;
      break;
    }
    hasRoom = limits.memory?.reserve('request', value.length) !== false;
    // The body is streamed from here on; but a body of which nothing is held yet is refused.
    if (!hasRoom && size === 0) throw new MemoryRefusal(limits.isV2 === true);
    if (!hasRoom) limits.memory?.add('request', value.length);
    first.push(value);
    size += value.length;
  }
  const isPacked = isGzip(request);
  if (isComplete && (!isPacked || size === 0)) return { whole: first, pieces: all(first) };
  if (isComplete) {
    const unpacked = await unpackWhole(first, size, limits);
    if (unpacked !== undefined) return { whole: [unpacked], pieces: all([unpacked]) };
  }
  if (isPacked && limits.memory?.reserve('unpacked', unpackingBytes) === false) {
    throw new MemoryRefusal(limits.isV2 === true);
  }
  const pieces = all(first, raw);
  return { whole: undefined, pieces: isPacked ? unpack(pieces, limits) : pieces };
}

/** The whole body as sent. For one that is known to be short. */
export async function readRawBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of received(request, limits)) {
    if (limits.memory?.reserve('request', piece.length) === false) {
      throw new MemoryRefusal(limits.isV2 === true);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Like `readBody`, for the result of `readRawBody`. */
export async function bodyOf(
  raw: Buffer,
  request: IncomingMessage,
  limits: BodyLimits,
): Promise<Body> {
  if (raw.length === 0 || !isGzip(request)) return { whole: [raw], pieces: all([raw]) };
  const unpacked = await unpackWhole([raw], raw.length, limits);
  if (unpacked !== undefined) return { whole: [unpacked], pieces: all([unpacked]) };
  return { whole: undefined, pieces: unpack(all([raw]), limits) };
}

/** A body that is small by its limits, as one. */
export async function readSmallBody(
  request: IncomingMessage,
  limits: BodyLimits,
  maxBytes: number,
): Promise<Buffer> {
  const { whole, pieces } = await readBody(request, {
    ...limits,
    maxBytes,
    maxUnpackedBytes: maxBytes,
  });
  const all = whole === undefined ? [] : [...whole];
  if (whole === undefined) for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

function isGzip(request: IncomingMessage): boolean {
  return request.headers['content-encoding']?.trim().toLowerCase() === 'gzip';
}

function tooLarge(): HttpError {
  return new HttpError(413, 'Request Entity Too Large');
}

/** The pieces as they come; the connection stays usable when a reader stops early. */
async function* received(
  request: IncomingMessage,
  limits: BodyLimits,
): AsyncGenerator<Buffer, undefined> {
  const iterator = request.iterator({ destroyOnReturn: false });
  let size = 0;
  // One timer, moved along: it only matters while a read is waiting.
  let isWaiting = false;
  const timer = setTimeout(() => {
    if (isWaiting) request.destroy(new HttpError(408, 'timeout'));
  }, limits.idleMs);
  try {
    for (;;) {
      isWaiting = true;
      timer.refresh();
      const { value, done } = (await iterator.next()) as IteratorResult<Buffer, undefined>;
      isWaiting = false;
      if (done === true) return;
      size += value.length;
      limits.onBytes(value.length);
      if (limits.maxBytes > 0 && size > limits.maxBytes) throw tooLarge();
      yield value;
      // Otherwise a socket with a megabyte of input would be read to its end before any other socket.
      if (!roundHasTime()) await new Promise(setImmediate);
    }
  } finally {
    clearTimeout(timer);
  }
}

async function* all(
  first: readonly Buffer[],
  rest?: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, undefined> {
  yield* first;
  if (rest !== undefined) yield* rest;
}

/** undefined when it grows too large for one piece. */
async function unpackWhole(
  pieces: readonly Buffer[],
  size: number,
  limits: BodyLimits,
): Promise<Buffer | undefined> {
  const packed = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, size);
  // The last four bytes are the claimed unpacked size. A buffer of that size saves copying.
  const told = packed.length < 18 ? 0 : packed.readUInt32LE(packed.length - 4);
  if (told > unpackedBytes) return undefined;
  if (limits.memory?.reserve('unpacked', told) === false) return undefined;
  const chunkSize = Math.max(Math.min(told + 1, packed.length * 32), 16 * 1024);
  try {
    // Limits the output to the claimed size, or to 64 KiB for small bodies, whose claim may be wrong.
    const maxOutputLength = Math.max(told, 64 * 1024);
    const unpacked = await gunzipWhole(packed, { chunkSize, maxOutputLength });
    checkUnpacked(unpacked.length, limits);
    return unpacked;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined;
    throw unpackError(error);
  }
}

async function* unpack(
  packed: AsyncIterable<Buffer>,
  limits: BodyLimits,
): AsyncGenerator<Buffer, undefined> {
  const gunzipper = createGunzip({ chunkSize: pieceBytes });
  const source = Readable.from(packed, { objectMode: false, highWaterMark: pieceBytes });
  source.on('error', (error) => gunzipper.destroy(error));
  source.pipe(gunzipper);
  let size = 0;
  try {
    for await (const piece of gunzipper as AsyncIterable<Buffer>) {
      size += piece.length;
      checkUnpacked(size, limits);
      yield piece;
    }
  } catch (error) {
    throw unpackError(error);
  } finally {
    source.destroy();
    gunzipper.destroy();
  }
}

function checkUnpacked(size: number, limits: BodyLimits): void {
  if (limits.maxUnpackedBytes > 0 && size > limits.maxUnpackedBytes) throw tooLarge();
}

/** In the words of Go's reader, as far as they are known. */
function unpackError(error: unknown): unknown {
  if (error instanceof HttpError) return error;
  switch ((error as NodeJS.ErrnoException).code) {
    case 'Z_BUF_ERROR':
      return new HttpError(400, 'unexpected EOF');
    case 'Z_DATA_ERROR':
      return new HttpError(
        400,
        (error as Error).message.includes('header')
          ? 'gzip: invalid header'
          : (error as Error).message.includes('check')
            ? 'gzip: invalid checksum'
            : 'flate: corrupt input',
      );
    default:
      return error;
  }
}

/** Reads and discards the rest of the body, so that the client gets an answer instead of a reset connection. */
export function discardBody(
  request: IncomingMessage,
  maxBytes: number,
  maxMs: number,
): Promise<void> {
  if (request.complete || request.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    let size = 0;
    const timer = setTimeout(done, maxMs);
    request.on('data', count);
    request.once('end', done);
    request.once('close', done);
    // A reader that has just stopped releases the stream at the end of the tick.
    setImmediate(() => request.resume());

    function count(piece: Buffer): void {
      size += piece.length;
      if (size > maxBytes) done();
    }
    function done(): void {
      clearTimeout(timer);
      request.off('data', count);
      request.off('end', done);
      request.off('close', done);
      resolve();
    }
  });
}
