// A set of values of a tag, by value number: the listed values, or all but the listed values. Number 0 means that the
// tag is missing, and counts as a value.

export class ValueSet {
  /** Ascending. */
  readonly numbers: Uint32Array;
  /** The set is of all values but `numbers`. */
  readonly complement: boolean;

  constructor(numbers: Uint32Array, complement: boolean) {
    this.numbers = numbers;
    this.complement = complement;
  }

  has(value: number): boolean {
    const numbers = this.numbers;
    let low = 0;
    let high = numbers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (numbers[middle]! < value) low = middle + 1;
      else high = middle;
    }
    return (low < numbers.length && numbers[low] === value) !== this.complement;
  }

  inverse(): ValueSet {
    return new ValueSet(this.numbers, !this.complement);
  }

  intersection(other: ValueSet): ValueSet {
    if (this.complement && other.complement) {
      return new ValueSet(merged(this.numbers, other.numbers), true);
    }
    const [listed, set] = this.complement ? [other, this] : [this, other];
    return new ValueSet(
      listed.numbers.filter((value) => set.has(value)),
      false,
    );
  }

  union(other: ValueSet): ValueSet {
    return this.inverse().intersection(other.inverse()).inverse();
  }

  /** 1 for every value of the set among 0 to `highest`. */
  table(highest: number): Uint8Array {
    const table = new Uint8Array(highest + 1);
    if (this.complement) table.fill(1);
    for (const value of this.numbers) table[value] = this.complement ? 0 : 1;
    return table;
  }
}

function merged(a: Uint32Array, b: Uint32Array): Uint32Array {
  const into = new Uint32Array(a.length + b.length);
  let at = 0;
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const x = i < a.length ? a[i]! : Infinity;
    const y = j < b.length ? b[j]! : Infinity;
    into[at++] = Math.min(x, y);
    if (x <= y) i++;
    if (y <= x) j++;
  }
  return into.slice(0, at);
}
