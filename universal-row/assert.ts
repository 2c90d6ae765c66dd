/** A broken belief of ours. Nobody catches one on purpose: it is a bug, never a client's mistake. */
export class AssertionFailure extends Error {
  override readonly name = 'AssertionFailure';
}

export function assert(condition: unknown, belief: string): asserts condition {
  if (!condition) throw new AssertionFailure(belief);
}
