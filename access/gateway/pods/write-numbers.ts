// Numbers of the writes that a gateway has sent to a group and not been answered yet (universal-row/once.ts).

import { mostSlots } from '../../../universal-row/once.ts';

/**
 * One sequence for all writes of this process: groups may come and go, but pods keep their record
 * of its writes.
 */
let lastSequence = 0;

export class WriteNumbers {
  readonly #free: number[] = [];
  #slots = 0;

  /** 0 when too many are under way. */
  take(): number {
    const slot = this.#free.pop() ?? this.#slots;
    if (slot === mostSlots) return 0;
    if (slot === this.#slots) this.#slots++;
    return ++lastSequence * mostSlots + slot;
  }

  /** The write has been answered, or its client is gone. */
  release(number: number): void {
    if (number !== 0) this.#free.push(number % mostSlots);
  }
}
