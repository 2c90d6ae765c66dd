// Expected failures: a client's mistake, a limit reached, a disk that is full. The text is the protocol's
// own (for Redis the code word first, as `ERR syntax error`), because clients match on it.

/**
 * An error reply to the client. It carries no stack: it is an answer, thrown only to leave a deep call in one step.
 * Throw the shared instances below where the text is fixed.
 */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  constructor(message: string) {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = limit;
  }
}

export const wrongType = new CommandError(
  'WRONGTYPE Operation against a key holding the wrong kind of value',
);
export const syntaxError = new CommandError('ERR syntax error');
export const notAnInteger = new CommandError('ERR value is not an integer or out of range');
export const notAFloat = new CommandError('ERR value is not a valid float');
export const noSuchKey = new CommandError('ERR no such key');
export const indexOutOfRange = new CommandError('ERR index out of range');

/**
 * Thrown when a read needs records that are not in memory. The pod undoes the changes of the
 * command so far, waits for `ready`, and runs the command again from its start: commands stay
 * straight-line synchronous code on every engine, and each one still happens at a single point in
 * time.
 */
export class ReadFault {
  readonly ready: Promise<void>;

  constructor(ready: Promise<void>) {
    this.ready = ready;
  }
}

/**
 * Error for a write that may or may not be kept. Its code is one that clients do not retry by
 * themselves.
 */
export const outcomeUnknown = 'ERR outcome unknown';
