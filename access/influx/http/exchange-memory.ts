// Memory one exchange holds of the plane's memory for requests. All of it is released when the
// exchange ends.

import {
  type MemoryUse,
  type RequestMemory,
  unauthenticatedTenant,
} from '../../admission/request-memory.ts';

/** Memory for one body. */
export interface BodyMemory {
  /** False when there is no room: nothing is counted then. */
  reserve(use: MemoryUse, bytes: number): boolean;
  /** Adds memory that is already in use. */
  add(use: MemoryUse, bytes: number): void;
}

interface Held {
  readonly tenant: number;
  readonly use: MemoryUse;
  bytes: number;
}

export class ExchangeMemory implements BodyMemory {
  readonly #memory: RequestMemory | undefined;
  readonly #held: Held[] = [];
  readonly #parser = { bytes: 0 };
  readonly #answer = { bytes: 0 };
  #isClosed = false;
  /** Tenant of the account. */
  tenant = unauthenticatedTenant;

  constructor(memory: RequestMemory | undefined) {
    this.#memory = memory;
  }

  reserve(use: MemoryUse, bytes: number): boolean {
    if (this.#memory === undefined || this.#isClosed) return true;
    if (!this.#memory.reserve(this.tenant, use, bytes)) return false;
    this.#note(use, bytes);
    return true;
  }

  add(use: MemoryUse, bytes: number): void {
    if (this.#memory === undefined || this.#isClosed) return;
    this.#memory.add(this.tenant, use, bytes);
    this.#note(use, bytes);
  }

  /** Sets the parser's memory. False when it would exceed the limit. */
  parserHolds(bytes: number): boolean {
    return this.#resize('unpacked', this.#parser, bytes);
  }

  /** As `parserHolds`, of the answer that is being written. */
  answerHolds(bytes: number): boolean {
    return this.#resize('reply', this.#answer, bytes);
  }

  #resize(use: MemoryUse, part: { bytes: number }, bytes: number): boolean {
    const grows = bytes - part.bytes;
    // Small steps are not worth counting.
    if (Math.abs(grows) < countedBytes) return true;
    if (grows > 0 && !this.reserve(use, grows)) return false;
    if (grows < 0) this.#giveBack(use, -grows);
    part.bytes = bytes;
    return true;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { tenant, use, bytes } of this.#held) this.#memory?.release(tenant, use, bytes);
  }

  #note(use: MemoryUse, bytes: number): void {
    const held = this.#find(use);
    if (held === undefined) this.#held.push({ tenant: this.tenant, use, bytes });
    else held.bytes += bytes;
  }

  #giveBack(use: MemoryUse, bytes: number): void {
    const held = this.#find(use);
    if (held === undefined || this.#isClosed) return;
    held.bytes -= bytes;
    this.#memory?.release(held.tenant, use, bytes);
  }

  #find(use: MemoryUse): Held | undefined {
    return this.#held.find((each) => each.use === use && each.tenant === this.tenant);
  }
}

const countedBytes = 256 * 1024;
