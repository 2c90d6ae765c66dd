// Consistency of a client's reads, if it differs from the tables': CONSISTENCY, READONLY.

import { CommandError } from '../../universal-row/errors.ts';
import type { ReadBounds } from '../../universal-row/command.ts';
import { SeenState } from '../gateway/session-token.ts';

export interface ReadMode {
  /** Name shown to the client. */
  readonly words: string;
  /** Undefined for the latest state. */
  readonly bounds: ReadBounds | undefined;
  readonly session?: SeenState;
}

/** Throws `CommandError` for an invalid token. */
export function sessionOf(token: string): SeenState {
  const session = SeenState.parse(token);
  if (session === undefined) throw new CommandError('ERR invalid session token');
  return session;
}
