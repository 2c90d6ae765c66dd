/** Turns record keys into bytes, one at a time: each is valid until the next. */
export class KeyBytes {
  #to: Buffer = Buffer.allocUnsafe(128);

  of(key: string): Buffer {
    if (key.length > this.#to.length) this.#to = Buffer.allocUnsafe(key.length * 2);
    this.#to.write(key, 0, 'latin1');
    return this.#to;
  }
}
