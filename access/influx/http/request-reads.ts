// Consistency of a request's reads, by its headers, overriding the properties of the databases:
//
//   X-Polyrow-Consistency: strong | eventual | session | bounded; ms=500; entries=1000
//   X-Polyrow-Session: TOKEN        as an earlier answer had it
//
// An answer in a session has a token of all that the client has seen, in a header of that name.

import type { IncomingHttpHeaders } from 'node:http';
import { anyAge, defaultBounds } from '../../../contracts/table-properties.ts';
import type { SeriesReads } from '../../../contracts/series-store.ts';
import { SeenState } from '../../gateway/session-token.ts';
import { HttpError } from './http-error.ts';

const consistencyHeader = 'X-Polyrow-Consistency';
export const sessionHeader = 'X-Polyrow-Session';

interface RequestReads {
  /** Undefined: as the properties of the database say. */
  readonly reads: SeriesReads | undefined;
  readonly session: SeenState | undefined;
}

/** Longer values could not be handed out again: clients refuse answers with long headers. */
const maxTokenLength = 8192;
const mostNumber = 2 ** 53;

/** Throws `HttpError` for an invalid header. */
export function requestReads(headers: IncomingHttpHeaders): RequestReads {
  const given = textOf(headers, consistencyHeader);
  const token = textOf(headers, sessionHeader);
  const isSession = given?.trim().toLowerCase() === 'session';
  const session = token === undefined ? undefined : sessionOf(token);
  if (isSession || (session !== undefined && given === undefined)) {
    const begun = session ?? new SeenState();
    return { reads: { ...anyAge, session: begun }, session: begun };
  }
  const reads = given === undefined ? undefined : readsOf(given);
  if (session === undefined || reads === undefined || reads === 'strong') return { reads, session };
  return { reads: { ...reads, session }, session };
}

function textOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name.toLowerCase()];
  return Array.isArray(value) ? value.join() : value;
}

function sessionOf(token: string): SeenState {
  const session = token.length > maxTokenLength ? undefined : SeenState.parse(token.trim());
  if (session === undefined) throw new HttpError(400, `invalid ${sessionHeader} header`);
  return session;
}

function readsOf(text: string): SeriesReads {
  const [kind = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  if (kind === 'bounded') return boundsOf(parameters);
  if (parameters.length === 0 && kind === 'strong') return 'strong';
  if (parameters.length === 0 && kind === 'eventual') return anyAge;
  throw invalid();
}

function boundsOf(parameters: readonly string[]): SeriesReads {
  const { ms, entries } = Object.fromEntries(parameters.map(numberOf)) as Record<string, number>;
  if (ms === undefined) throw invalid();
  return { maxStalenessMs: ms, maxLagEntries: entries ?? defaultBounds.maxLagEntries };
}

function numberOf(parameter: string): [string, number] {
  const [, name, digits] = /^(ms|entries)\s*=\s*(\d{1,16})$/.exec(parameter) ?? [];
  const value = Number(digits);
  if (name === undefined || value > mostNumber) throw invalid();
  return [name, value];
}

function invalid(): HttpError {
  return new HttpError(
    400,
    `invalid ${consistencyHeader} header: strong, eventual, session, or bounded; ms=N; entries=N`,
  );
}
