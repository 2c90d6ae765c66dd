// Identities of batches of points. A gateway that does not know whether a leader stored a batch gives it to the next one,
// which recognises it by its identity (storage-node/stored-batches.ts).
//
// An identity names rows of a body, as a further attempt may cut the body at other rows:
//
//     body:from+rows                     rows of the body
//     body:from+rows/first+count/all     of all rows of such a batch those from `first` on, in the order of its groups

export interface BatchIdentity {
  readonly id: string;
  /** As `performance.now` of this process: no leader was given the batch before. */
  readonly at: number;
  /** A leader may have stored it already. */
  readonly isRepeated: boolean;
}

export function batchId(body: string, from: number, rows: number): string {
  return `${body}:${from}+${rows}`;
}

/** Of a part of the batch `id`. */
export function partId(id: string, first: number, count: number, all: number): string {
  return `${id}/${first}+${count}/${all}`;
}

/** Rows `[from, to)`. */
export interface Rows {
  readonly from: number;
  readonly to: number;
}

export interface BatchRows extends Rows {
  readonly body: string;
  /** Undefined for all rows of the batch. */
  readonly part: (Rows & { readonly of: number }) | undefined;
}

const form = /^(.*):(\d+)\+(\d+)(?:\/(\d+)\+(\d+)\/(\d+))?$/s;

/** An identity of another form is taken for that of a whole body. */
export function readBatchId(id: string): BatchRows {
  const found = form.exec(id);
  if (found === null) return { body: id, from: 0, to: 1, part: undefined };
  const body = found[1]!;
  const [from, rows, first, count, of] = found.slice(2).map(Number) as [number, ...number[]];
  const part = found[4] === undefined ? undefined : { from: first!, to: first! + count!, of: of! };
  return { body, from, to: from + rows!, part };
}

/** A leader is about to be given the batch. */
export function offered<T extends BatchIdentity | undefined>(identity: T): T {
  return identity && (identity.isRepeated ? identity : { ...identity, at: performance.now() });
}

/** A leader that was given the batch may have stored it. */
export function repeated<T extends BatchIdentity | undefined>(identity: T): T {
  return identity && { ...identity, isRepeated: true };
}

/** Milliseconds since a leader was first given the batch; 0 where none may have stored it. Nodes tell each other this. */
export function ageOf({ at, isRepeated }: BatchIdentity): number {
  return isRepeated ? Math.max(1, performance.now() - at) : 0;
}

/** The opposite of `ageOf`, at another node. */
export function identityOf(id: string, age: number): BatchIdentity {
  // Nodes of the release before tell fractions of a millisecond for one that is given for the first time.
  return { id, at: performance.now() - Math.max(0, age), isRepeated: age >= 1 };
}
