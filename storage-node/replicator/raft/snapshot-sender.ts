// Sends the state of a group to a follower whose entries are gone: numbered chunks, a few of them
// in flight, the engine's own message last. Unanswered chunks are sent again, so a lost link costs
// the window only.

import type { Message } from '../engine/frames.ts';
import type { ExportedState } from './state-machine.ts';

/** Types of messages beside the engine's. */
export const SnapshotType = { chunk: 100, answer: 101 } as const;

/** Of some 128 kB each: enough for a connection on which answers take 20 ms. */
const windowChunks = 16;
const resendTicks = 20;
const giveUpTicks = 200;

interface Part {
  message: Message;
  payloads: Uint8Array[];
}

interface SnapshotSenderParts {
  /** Tells transfers of this life of the replica apart. */
  id: number;
  state: ExportedState;
  /** The engine's message, with the position of the state. */
  last: Message;
  post: (message: Message, payloads: Uint8Array[]) => void;
  /** Called once, if the follower does not receive all of it. */
  failed: () => void;
}

export class SnapshotSender {
  readonly index: number;
  readonly #p: SnapshotSenderParts;
  readonly #chunks: AsyncIterator<Uint8Array>;
  /** Numbered from `#first` on: sent, and not answered. */
  #window: Part[] = [];
  /** Memory of chunks that were answered, for the next ones. */
  readonly #spares: Uint8Array[] = [];
  #first = 0;
  #next = 0;
  #isAtEnd = false;
  #reading = false;
  #over = false;
  #ticks = 0;
  #answeredAt = 0;
  #sentAt = 0;

  constructor(parts: SnapshotSenderParts) {
    this.#p = parts;
    this.index = parts.state.index;
    this.#chunks = parts.state.chunks[Symbol.asyncIterator]();
    void this.#read();
  }

  /** The receiver waits for this number. Returns the last part once the receiver has all of the snapshot. */
  answered(id: number, next: number, refused: boolean): Message | undefined {
    if (id !== this.#p.id || this.#over) return undefined;
    if (refused) {
      this.stop();
      return undefined;
    }
    if (next <= this.#first || next > this.#next) return undefined;
    const last = this.#window.at(-1);
    for (const { payloads } of this.#window.splice(0, next - this.#first)) {
      this.#spares.push(...payloads);
    }
    this.#first = next;
    this.#answeredAt = this.#ticks;
    if (this.#isAtEnd && this.#window.length === 0) {
      this.#end();
      return last?.message;
    }
    void this.#read();
    return undefined;
  }

  tick(): void {
    this.#ticks++;
    if (this.#ticks - this.#answeredAt > giveUpTicks) return this.stop();
    const quietSince = Math.max(this.#answeredAt, this.#sentAt);
    if (this.#window.length === 0 || this.#ticks - quietSince < resendTicks) return;
    this.#sentAt = this.#ticks;
    for (const { message, payloads } of this.#window) this.#p.post(message, payloads);
  }

  stop(): void {
    if (this.#over) return;
    this.#end();
    this.#p.failed();
  }

  #end(): void {
    this.#over = true;
    this.#window = [];
    void this.#chunks.return?.().catch(() => undefined);
  }

  async #read(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    try {
      while (!this.#over && !this.#isAtEnd && this.#window.length < windowChunks) {
        const { value, done } = await this.#chunks.next();
        if (this.#over) return;
        this.#send(done ? undefined : value);
      }
    } catch {
      // The rows are gone, as when the group is dropped.
      this.stop();
    } finally {
      this.#reading = false;
    }
  }

  /** The state machine's memory for a chunk is for the next one, too. */
  #copy(chunk: Uint8Array): Uint8Array {
    const { length } = chunk;
    const spare = this.#spares.pop()?.buffer;
    const isEnough = spare !== undefined && spare.byteLength >= length;
    // A little more, as chunks are not all of one size.
    const memory = isEnough ? spare : new ArrayBuffer(length + (length >>> 3));
    const copy = new Uint8Array(memory, 0, length);
    copy.set(chunk);
    return copy;
  }

  #send(chunk: Uint8Array | undefined): void {
    const { id, last, post } = this.#p;
    const number = this.#next++;
    const context = encodeNumbers(id, number);
    let part: Part = { message: { ...last, context }, payloads: [] };
    if (chunk === undefined) this.#isAtEnd = true;
    else {
      const message = { ...last, type: SnapshotType.chunk, snapshot: undefined, context };
      part = { message, payloads: [this.#copy(chunk)] };
    }
    this.#window.push(part);
    this.#sentAt = this.#ticks;
    post(part.message, part.payloads);
  }
}

export function encodeNumbers(id: number, number: number): Uint8Array {
  const b = Buffer.alloc(16);
  b.writeDoubleLE(id, 0);
  b.writeDoubleLE(number, 8);
  return b;
}

/** Undefined for a context of another origin. */
export function decodeNumbers(context: Uint8Array): { id: number; number: number } | undefined {
  if (context.length !== 16) return undefined;
  const b = Buffer.from(context.buffer, context.byteOffset, 16);
  const id = b.readDoubleLE(0);
  const number = b.readDoubleLE(8);
  return Number.isSafeInteger(id) && Number.isSafeInteger(number) ? { id, number } : undefined;
}
