// Memory one connection holds of its plane's memory for requests, in the account of its tenant.

import {
  type MemoryAccount,
  memoryUses,
  type MemoryUse,
  type RequestMemory,
  unauthenticatedTenant,
} from '../admission/request-memory.ts';

/** Reply to a request that exceeds the memory. */
export const outOfRequestMemory = "OOM command not allowed when used memory > 'max-request-memory'";

export class HeldMemory {
  readonly #memory: RequestMemory | undefined;
  #account: MemoryAccount | undefined;
  readonly #held: Record<MemoryUse, number> = {
    request: 0,
    unpacked: 0,
    reply: 0,
    transaction: 0,
    subscription: 0,
    answer: 0,
  };

  constructor(memory: RequestMemory | undefined) {
    this.#memory = memory;
    this.#account = memory?.account(unauthenticatedTenant);
  }

  /** Moves the account to another tenant: undefined before a login. */
  belongsTo(tenant: number | undefined): void {
    const next = this.#memory?.account(tenant ?? unauthenticatedTenant);
    for (const use of memoryUses) {
      const bytes = this.#held[use];
      this.#account?.release(use, bytes);
      next?.add(use, bytes);
    }
    this.#account = next;
  }

  /** False when there is not as much left: then nothing has changed. */
  reserve(use: MemoryUse, bytes: number): boolean {
    if (this.#account?.reserve(use, bytes) === false) return false;
    this.#held[use] += bytes;
    return true;
  }

  /** For bytes that are there already. */
  add(use: MemoryUse, bytes: number): void {
    this.#account?.add(use, bytes);
    this.#held[use] += bytes;
  }

  release(use: MemoryUse, bytes: number): void {
    this.#account?.release(use, bytes);
    this.#held[use] -= bytes;
  }

  /** Sets the memory held for this use. False when it would exceed the limit. */
  set(use: MemoryUse, bytes: number): boolean {
    const more = bytes - this.#held[use];
    if (more > 0) return this.reserve(use, more);
    this.release(use, -more);
    return true;
  }

  /** Gives all of it back; nothing is counted from here on. */
  close(): void {
    for (const use of memoryUses) this.#account?.release(use, this.#held[use]);
    this.#account = undefined;
  }
}
