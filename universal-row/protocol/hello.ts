// Handshake of a link between two processes of a cluster: both identify themselves, agree on a
// protocol version and prove that they know the cluster's secret. The connecting side sends a
// hello, the listener answers with a welcome and a proof, and the connecting side sends its proof.
// Each proof is an HMAC-SHA-256 over all previous messages, so that neither a name nor a version
// can be changed on the way, and over random numbers of both, so that it is of no use on another
// link. The secret is never sent.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { beginFrame, endFrame, FrameType } from './frames.ts';
import { WireError, WireReader, WireWriter } from './wire.ts';

/** Versions of the protocol that this build speaks. */
const protocolRange = { lowest: 1, highest: 1 } as const;
/** Most bytes a peer may send before it has proved that it knows the secret. */
export const maxHelloBytes = 1024;
export const nonceBytes = 32;
const proofBytes = 32;
const magic = 0x5957_4c50; // PLWY
const maxNameBytes = 128;

/** A process's description of itself. */
export interface LinkIdentity {
  /** Links are between processes of one cluster. */
  cluster: string;
  /** Its name in the cluster. */
  node: string;
  /** A number that is larger at each of its starts. */
  incarnation: number;
  /** Formats that it may be sent: the level of the cluster is the lowest of its members. */
  level: number;
  /** Purpose of the link: `pods`, `raft/bulk`. The listener decides which ones it serves. */
  purpose: string;
}

/**
 * Links by which a process asks to be taken into a cluster: it knows the secret and an address, and leaves `cluster` and
 * `node` empty until it is told them.
 */
export const joinPurpose = 'join';

function isStranger({ cluster, purpose }: LinkIdentity): boolean {
  return cluster === '' && purpose === joinPurpose;
}

/** Identity of the other side of a link. */
export interface LinkPeer extends LinkIdentity {
  /** The highest version that both speak. */
  version: number;
}

/** The link cannot be. The message is for the log; the peer is told as much. */
export class HelloError extends Error {
  override name = 'HelloError';
}

interface Hello {
  lowest: number;
  highest: number;
  identity: LinkIdentity;
  nonce: Buffer;
}

function writeHello(
  writer: WireWriter,
  lowest: number,
  highest: number,
  identity: LinkIdentity,
  nonce: Buffer,
): void {
  if (nonce.length !== nonceBytes) throw new RangeError('a nonce of the wrong size');
  writer.u32(magic);
  writer.u16(lowest);
  writer.u16(highest);
  writer.varint(identity.level);
  writer.varint(identity.incarnation);
  for (const name of [identity.cluster, identity.node, identity.purpose]) {
    if (Buffer.byteLength(name) > maxNameBytes) throw new RangeError('a name is too long');
    writer.string(name);
  }
  writer.raw(nonce, 0, nonceBytes);
}

function readHello(reader: WireReader): Hello {
  if (reader.u32() !== magic) throw new WireError('not a link of a cluster');
  const lowest = reader.u16();
  const highest = reader.u16();
  const level = reader.varint();
  const incarnation = reader.varint();
  const cluster = reader.string();
  const node = reader.string();
  const purpose = reader.string();
  const at = reader.skip(nonceBytes);
  const nonce = Buffer.from(reader.buf.subarray(at, at + nonceBytes));
  return { lowest, highest, identity: { cluster, node, incarnation, level, purpose }, nonce };
}

function proof(secret: Buffer, side: 'client' | 'server', transcript: Buffer): Buffer {
  return createHmac('sha256', secret).update(`polyrow link ${side}\0`).update(transcript).digest();
}

function isProof(
  secret: Buffer,
  side: 'client' | 'server',
  transcript: Buffer,
  given: Buffer,
): boolean {
  return given.length === proofBytes && timingSafeEqual(proof(secret, side, transcript), given);
}

/** The highest version of both ranges. */
function commonVersion(theirs: { lowest: number; highest: number }): number | undefined {
  const version = Math.min(theirs.highest, protocolRange.highest);
  return version >= Math.max(theirs.lowest, protocolRange.lowest) ? version : undefined;
}

function frame(type: number, write: (writer: WireWriter) => void): Buffer {
  const writer = new WireWriter(512);
  const start = beginFrame(writer, type);
  write(writer);
  endFrame(writer, start);
  return writer.view();
}

/** Frame that refuses a link and ends the handshake. */
export function refusalFrame(text: string): Buffer {
  return frame(FrameType.refused, (writer) => writer.string(text.slice(0, 200)));
}

function refusedByPeer(reader: WireReader): HelloError {
  return new HelloError(`refused by the peer: ${reader.string()}`);
}

interface HandshakeOptions {
  identity: LinkIdentity;
  secret: Buffer;
  /** Random bytes, never used before. */
  nonce: Buffer;
}

/**
 * Result of a frame: bytes to send, the peer once it is identified, or neither while more is
 * needed.
 */
export interface HandshakeStep {
  send?: Buffer;
  peer?: LinkPeer;
}

/** The side that connects. Send `hello`, then give `received` every frame until it tells the peer. */
export class ClientHandshake {
  /** The first frame. */
  readonly hello: Buffer;
  readonly #options: HandshakeOptions;
  readonly #said: Buffer;
  #peer: LinkPeer | undefined;

  constructor(options: HandshakeOptions) {
    this.#options = options;
    const writer = new WireWriter(512);
    const { lowest, highest } = protocolRange;
    writeHello(writer, lowest, highest, options.identity, options.nonce);
    this.#said = writer.view();
    this.hello = frame(FrameType.hello, (out) => out.raw(this.#said, 0, this.#said.length));
  }

  /** Throws a `HelloError` when the link is not possible, a `WireError` for invalid messages. */
  received(type: number, buf: Buffer, start: number, end: number): HandshakeStep {
    const reader = new WireReader(buf, start, end);
    if (type === FrameType.refused) throw refusedByPeer(reader);
    if (this.#peer !== undefined) {
      if (type !== FrameType.ready) throw new WireError('no answer to the proof');
      return { peer: this.#peer };
    }
    if (type !== FrameType.welcome) throw new WireError('no answer to the hello');
    const { secret, identity } = this.#options;
    const { highest: version, identity: other } = readHello(reader);
    const transcript = Buffer.concat([this.#said, buf.subarray(start, reader.pos)]);
    const given = buf.subarray(reader.skip(proofBytes), reader.pos);
    reader.done();
    if (!isProof(secret, 'server', transcript, given)) {
      throw new HelloError('the peer does not know the secret of the cluster');
    }
    if (other.cluster !== identity.cluster && !isStranger(identity)) {
      throw new HelloError('the peer is of another cluster');
    }
    if (version < protocolRange.lowest || version > protocolRange.highest) {
      throw new HelloError(`the peer speaks version ${version}`);
    }
    this.#peer = { ...other, version };
    const own = proof(secret, 'client', transcript);
    return { send: frame(FrameType.proof, (out) => out.raw(own, 0, own.length)) };
  }
}

/** The side that was connected to. Give `received` every frame until it tells the peer. */
export class ServerHandshake {
  readonly #options: HandshakeOptions;
  #peer: LinkPeer | undefined;
  #transcript: Buffer | undefined;

  constructor(options: HandshakeOptions) {
    this.#options = options;
  }

  /** Throws a `HelloError` when the link cannot be: its text is for the peer, too (`refusalFrame`). */
  received(type: number, buf: Buffer, start: number, end: number): HandshakeStep {
    const reader = new WireReader(buf, start, end);
    if (type === FrameType.refused) throw refusedByPeer(reader);
    return this.#peer === undefined || this.#transcript === undefined
      ? this.#welcome(type, reader)
      : this.#admit(type, reader, this.#peer, this.#transcript);
  }

  #welcome(type: number, reader: WireReader): HandshakeStep {
    if (type !== FrameType.hello) throw new WireError('a link begins with a hello');
    const { buf, pos: start, end } = reader;
    const theirs = readHello(reader);
    reader.done();
    const { identity, secret, nonce } = this.#options;
    if (theirs.identity.cluster !== identity.cluster && !isStranger(theirs.identity)) {
      throw new HelloError('this node is of another cluster');
    }
    const version = commonVersion(theirs);
    if (version === undefined) {
      const { lowest, highest } = protocolRange;
      throw new HelloError(`this node speaks versions ${lowest} to ${highest} of the protocol`);
    }
    const writer = new WireWriter(512);
    writeHello(writer, version, version, { ...identity, purpose: theirs.identity.purpose }, nonce);
    const said = writer.view();
    this.#transcript = Buffer.concat([buf.subarray(start, end), said]);
    this.#peer = { ...theirs.identity, version };
    const own = proof(secret, 'server', this.#transcript);
    return {
      send: frame(FrameType.welcome, (out) => {
        out.raw(said, 0, said.length);
        out.raw(own, 0, own.length);
      }),
    };
  }

  #admit(type: number, reader: WireReader, peer: LinkPeer, transcript: Buffer): HandshakeStep {
    if (type !== FrameType.proof) throw new WireError('no proof follows the hello');
    const given = reader.buf.subarray(reader.pos, reader.end);
    if (!isProof(this.#options.secret, 'client', transcript, given)) {
      throw new HelloError('the secret of the cluster is another one');
    }
    return { send: frame(FrameType.ready, () => {}), peer };
  }
}
