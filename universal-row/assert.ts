/** A violated invariant: a defect of the server, never a client's error. It is not meant to be caught. */
class AssertionFailure extends Error {
  override readonly name = 'AssertionFailure';
}

export function assert(condition: unknown, belief: string): asserts condition {
  if (!condition) throw new AssertionFailure(belief);
}
