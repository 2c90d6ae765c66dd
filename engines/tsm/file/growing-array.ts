// Numbers appended one by one, without an object or a box for any.

interface NumberArray {
  [index: number]: number;
  readonly length: number;
  set(from: ArrayLike<number>): void;
  subarray(start: number, end: number): ArrayLike<number>;
}

export class GrowingArray<A extends NumberArray> {
  #array: A;
  #length = 0;
  readonly #make: (length: number) => A;

  constructor(make: (length: number) => A) {
    this.#make = make;
    this.#array = make(64);
  }

  get length(): number {
    return this.#length;
  }

  /** Longer than `length`. */
  get array(): A {
    return this.#array;
  }

  push(value: number): void {
    if (this.#length === this.#array.length) {
      const larger = this.#make(this.#length * 2);
      larger.set(this.#array.subarray(0, this.#length));
      this.#array = larger;
    }
    this.#array[this.#length++] = value;
  }
}
