// MIGRATE: moves keys to another server. Their table is held from when the first value is read until the target has
// answered for all and the keys are dropped, so that no write to them is lost. The connection is the host's.

import type { Arguments } from '../../arguments.ts';
import type { Transform } from '../../command.ts';
import { CommandError, ReadFault, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { Rows } from '../../rows.ts';
import { step, type Steps } from '../../steps.ts';
import { dumped } from './rdb/dump.ts';
import { dropRow } from './support/typed-row.ts';

const keyWord = 3;
const optionsFrom = 6;
const defaultTimeoutMs = 1000;
const keyMustBeEmpty = new CommandError(
  'ERR When using MIGRATE KEYS option, the key argument must be set to the empty string',
);

export interface MigrationTarget {
  readonly host: string;
  readonly port: string;
  readonly db: number;
  /** Without any progress. */
  readonly timeoutMs: number;
  /** Words of AUTH: a password, or a user and a password. */
  readonly auth: readonly string[];
  /** Keys that are there are replaced. */
  readonly replaces: boolean;
}

/** A connection to the target of one MIGRATE. None of its promises rejects. */
export interface MigrationLink {
  /** Connects, and resolves to why that failed, if so. */
  open(): Promise<string | undefined>;
  /** Sends a value. `ttlMs` is 0 for a key that does not expire. */
  send(key: Buffer, ttlMs: number, payload: Buffer): void;
  /** Promise to wait for before the next value is sent; undefined while the target keeps up. */
  room(): Promise<void> | undefined;
  /** Waits until the target has answered for all that was sent, or for nothing more. */
  answers(): Promise<MigrationAnswers>;
  close(): void;
}

export interface MigrationAnswers {
  /** Whether the target has taken each value, in the order in which they were sent. */
  readonly taken: readonly boolean[];
  /** The first error, as it is to be answered. */
  readonly error: string | undefined;
}

/** Opens connections to other servers. */
type MigrationHost = (target: MigrationTarget) => MigrationLink;

interface Request extends MigrationTarget {
  readonly copies: boolean;
  /** Numbers of the words that are keys. */
  readonly keys: readonly number[];
}

/** The words of MIGRATE that are keys. */
export function migratedKeys(args: Arguments): number[] {
  if (args.count > keyWord && args.lens[keyWord]! > 0) return [keyWord];
  for (let word = optionsFrom; word < args.count; word++) {
    if (args.is(word, 'KEYS')) {
      return Array.from({ length: args.count - word - 1 }, (_, i) => word + 1 + i);
    }
    if (args.is(word, 'AUTH')) word++;
    else if (args.is(word, 'AUTH2')) word += 2;
  }
  return [];
}

function requestOf(args: Arguments): Request {
  let copies = false;
  let replaces = false;
  let auth: string[] = [];
  let keys: readonly number[] = [keyWord];
  for (let word = optionsFrom; word < args.count; word++) {
    const left = args.count - word - 1;
    if (args.is(word, 'COPY')) copies = true;
    else if (args.is(word, 'REPLACE')) replaces = true;
    else if (args.is(word, 'AUTH') && left >= 1) auth = [args.latin1(++word)];
    else if (args.is(word, 'AUTH2') && left >= 2) {
      auth = [args.latin1(++word), args.latin1(++word)];
    } else if (args.is(word, 'KEYS')) {
      if (args.lens[keyWord] !== 0) throw keyMustBeEmpty;
      keys = migratedKeys(args);
      break;
    } else throw syntaxError;
  }
  const timeoutMs = args.integer(5);
  const db = args.integer(4);
  return {
    host: args.latin1(1),
    port: args.latin1(2),
    db,
    timeoutMs: timeoutMs > 0 ? timeoutMs : defaultTimeoutMs,
    auth,
    replaces,
    copies,
    keys,
  };
}

/** MIGRATE for a client that may have connections made by `host`. */
export function migrateTransform(host: MigrationHost): Transform {
  const inSteps = (rows: Rows, args: Arguments, reply: Reply): Steps =>
    migrateInSteps(host, rows, args, reply);
  return (rows, args, reply) => {
    const { keys } = requestOf(args);
    const { buf, starts, lens } = args;
    const isThere = (word: number): boolean => rows.find(buf, starts[word]!, lens[word]!) !== 0;
    if (keys.some(isThere)) return inSteps;
    reply.simple('NOKEY');
    return undefined;
  };
}

/** Waits for something that is not of the rows. */
function* outcome<T>(promise: Promise<T>): Generator<ReadFault, T, undefined> {
  let value: T | undefined;
  yield new ReadFault(
    promise.then((resolved) => {
      value = resolved;
    }),
  );
  return value as T;
}

function* migrateInSteps(host: MigrationHost, rows: Rows, args: Arguments, reply: Reply): Steps {
  const request = requestOf(args);
  const link = host(request);
  try {
    const failure = yield* outcome(link.open());
    if (failure !== undefined) {
      reply.error(failure);
      return;
    }
    const sent = yield* sendAll(link, request.keys, rows, args);
    if (sent.length === 0) {
      reply.simple('NOKEY');
      return;
    }
    const { taken, error } = yield* outcome(link.answers());
    if (!request.copies) {
      for (const [i, word] of sent.entries()) {
        if (taken[i] === true) yield* step(() => dropRow(rows, args, word));
      }
    }
    if (error === undefined) reply.ok();
    else reply.error(error);
  } finally {
    link.close();
  }
}

/** Sends the values under the keys; returns the positions of the existing ones. */
function* sendAll(
  link: MigrationLink,
  keys: readonly number[],
  rows: Rows,
  args: Arguments,
): Generator<ReadFault | undefined, number[], undefined> {
  const { buf, starts, lens } = args;
  const sent: number[] = [];
  for (const word of keys) {
    const find = (): number => rows.find(buf, starts[word]!, lens[word]!);
    const expireAt = yield* step(() => {
      const row = find();
      return row === 0 ? -1 : rows.expireAt(row);
    });
    if (expireAt < 0) continue;
    const payload = yield* dumped(rows, find);
    // As in Redis: a key about to expire does so at the target.
    const ttlMs = expireAt === 0 ? 0 : Math.max(1, expireAt - rows.now);
    link.send(Buffer.from(args.bytes(word)), ttlMs, payload);
    sent.push(word);
    for (let room = link.room(); room !== undefined; room = link.room()) yield* outcome(room);
  }
  return sent;
}
