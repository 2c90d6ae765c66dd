// The kinds of work that wait apart from each other on a pod: reads and writes, small and large, so that what is in one
// line takes about as long as its neighbours (ABase, section 4.3), and what the pod does of its own accord
// (CockroachDB's admission control: work of low priority in the queues of all others).

export const WorkKind = {
  smallRead: 0,
  smallWrite: 1,
  largeRead: 2,
  largeWrite: 3,
  /** Compaction, backup, migration. */
  background: 4,
} as const;
export type WorkKind = (typeof WorkKind)[keyof typeof WorkKind];

export const kindCount = 5;
/** Of those that are asked for by clients. */
export const foregroundKinds = 4;

/** Work on more bytes than this is large. */
export const largeBytes = 16 * 1024;

/** `bytes` is what the work is expected to read or write. */
export function kindOf(isWrite: boolean, bytes: number, boundary = largeBytes): WorkKind {
  if (bytes > boundary) return isWrite ? WorkKind.largeWrite : WorkKind.largeRead;
  return isWrite ? WorkKind.smallWrite : WorkKind.smallRead;
}

export function isLarge(kind: WorkKind): boolean {
  return kind === WorkKind.largeRead || kind === WorkKind.largeWrite;
}

export function isWriteKind(kind: WorkKind): boolean {
  return kind === WorkKind.smallWrite || kind === WorkKind.largeWrite;
}
