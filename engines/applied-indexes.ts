// How far an engine is in the log of each group whose rows it holds.

/** The group of a pod whose tables have one copy each. */
export const localGroup = 1;

const entryBytes = 12;

export class AppliedIndexes {
  /** Index applied for `localGroup`. */
  local = 0;
  readonly #others = new Map<number, number>();

  of(group: number): number {
    return group === localGroup ? this.local : (this.#others.get(group) ?? 0);
  }

  set(group: number, index: number): void {
    if (group === localGroup) this.local = index;
    else this.#others.set(group, index);
  }

  get hasOthers(): boolean {
    return this.#others.size > 0;
  }

  get isEmpty(): boolean {
    return this.local === 0 && !this.hasOthers;
  }

  copy(): AppliedIndexes {
    const copy = new AppliedIndexes();
    copy.local = this.local;
    for (const [group, index] of this.#others) copy.#others.set(group, index);
    return copy;
  }

  /** Indexes applied for all groups but `localGroup`: (group u32, index f64)*, big-endian. */
  encodeOthers(): Buffer {
    const bytes = Buffer.alloc(entryBytes * this.#others.size);
    let at = 0;
    for (const [group, index] of this.#others) {
      bytes.writeUInt32BE(group, at);
      bytes.writeDoubleBE(index, at + 4);
      at += entryBytes;
    }
    return bytes;
  }

  /** Throws `RangeError` for bytes that `encodeOthers` cannot have produced. */
  readOthers(bytes: Buffer): void {
    if (bytes.length % entryBytes !== 0) throw new RangeError('indexes of groups: cut short');
    for (let at = 0; at < bytes.length; at += entryBytes) {
      this.#others.set(bytes.readUInt32BE(at), bytes.readDoubleBE(at + 4));
    }
  }
}
