// A Redis command is a row of a table and one short function. Each file of this folder holds the rows of
// one data type; registry.ts puts them together. COMMAND, COMMAND DOCS, ACL categories, arity checks,
// key extraction and the compatibility table in the docs all come from these rows.

import type { Arguments } from '../../../universal-row/arguments.ts';
import type { Action, Transform } from '../../../universal-row/command.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { RespWriter } from '../resp-writer.ts';

/**
 * A command about the connection or the server rather than about rows. A promise makes the
 * connection wait before its next command; then the reply goes to the writer that `client.answer`
 * gives, or the promise resolves to it. `C` is the handler's view of its client (`Client` in
 * client.ts); the table of commands itself depends on none.
 */
export type Handler<C = never> = (
  client: C,
  args: Arguments,
  reply: RespWriter,
) => void | Promise<Reply | void>;

export type CommandFlag =
  | 'write'
  | 'readonly'
  | 'denyoom'
  | 'admin'
  | 'pubsub'
  | 'noscript'
  | 'blocking'
  | 'loading'
  | 'stale'
  | 'fast'
  | 'no_auth'
  | 'no_multi'
  | 'may_replicate'
  | 'movablekeys';

export type CommandGroup =
  | 'string'
  | 'hash'
  | 'list'
  | 'set'
  | 'sorted-set'
  | 'stream'
  | 'bitmap'
  | 'hyperloglog'
  | 'geo'
  | 'generic'
  | 'pubsub'
  | 'transactions'
  | 'connection'
  | 'server'
  | 'scripting'
  | 'cluster';

/**
 * Positions of the keys: every `step`th word from word `first` to word `last` (negative counts from the end, -1 is
 * the last word), or a function that lists the word numbers, for `movablekeys`.
 */
export interface KeyRange {
  first: number;
  last: number;
  step: number;
}
export type KeyFinder = (args: Arguments) => number[];

/** Words that name channels, as `KeyRange` with every word. */
export interface ChannelRange {
  first: number;
  last: number;
  /** The keys are patterns. */
  isPattern: boolean;
}

export interface Blocking {
  /**
   * Position of the time-out argument in seconds, negative from the end; or a function that finds
   * it.
   */
  timeout: number | ((args: Arguments) => number);
  /** 'ms' when that word is in milliseconds. */
  unit?: 's' | 'ms';
  /** Reply after the timeout. */
  onTimeout: 'nil' | 'nilArray';
  /** Immediate reply inside MULTI, where that differs. */
  inTransaction?: 'nil' | 'nilArray';
  /**
   * The command removes nothing, or each client waits for something else: all clients waiting for a
   * key are tried when it changes, not only as many as find something.
   */
  isShared?: boolean;
  /** An error of a later attempt is answered, too; else the client continues waiting. */
  reportsErrors?: boolean;
}

export interface CommandSpec<C = never> {
  /** Lower case. For a subcommand, its own word only. */
  name: string;
  /** Number of words, the command's name included; -n is at least n. For a subcommand the container's name counts too. */
  arity: number;
  /**
   * The words after the command's name: `key value [NX | XX] [EX seconds]`, `key [key ...]`.
   * COMMAND DOCS shows them. The notation is that of support/syntax.ts; absent without arguments.
   */
  syntax?: string;
  flags: readonly CommandFlag[];
  keys?: KeyRange | KeyFinder;
  /** Channels it sends to or listens to. */
  channels?: ChannelRange;
  group: CommandGroup;
  /** The Redis version that brought it. */
  since: string;
  summary: string;
  complexity?: string;
  /** For a command on rows. */
  action?: Action;
  run?: Transform;
  /**
   * The transform for one client, whose scripts act on its behalf. If `run` exists too, this transform replaces it
   * where the rows are in this process.
   */
  bind?: (client: C) => Transform;
  /** Beside `bind`: why the command cannot run where the rows are in another process; undefined where it can. */
  refusalElsewhere?: (client: C) => string | undefined;
  /**
   * The command may wait. When `run` returns without an answer and without a write, the client waits until one of its
   * keys changes, and `run` is tried again. In MULTI the command answers as at a timeout instead.
   */
  blocks?: Blocking;
  /**
   * Handler for a command on the connection or the server. If `run` exists too, the handler replaces it in a cluster,
   * except in MULTI.
   */
  handle?: Handler<C>;
  /** Beside `run`: `handle` is called on a server alone, too; else in a cluster only. */
  handlesAlone?: boolean;
  /** The command waits for its tenant's units as a command on rows does. */
  takesUnits?: boolean;
  /** The command does not convert its arguments, or counts the work: they may be of any length. */
  longWords?: boolean;
  /** Words it takes at most, where that is another number than for its like. */
  maxWords?: number;
  /** The command uses databases other than the selected one. */
  usesSpan?: boolean;
  /**
   * The command changes the function libraries of its tenant, which are rows of a table of their
   * own.
   */
  ofLibraries?: boolean;
  /** The command uses the function libraries of its tenant. */
  usesLibraries?: boolean;
  /**
   * The command concerns all databases, so it runs on every pod; the pod of the selected database
   * replies.
   */
  everyPod?: boolean;
  /** Queries costs: its own cost is charged, but not reported. */
  hidesCost?: boolean;
  /** About the server and all of its tenants: for the users of tenant `default` alone. */
  serverWide?: boolean;
  /** Allowed in MULTI, but run at once instead of being queued (EXEC, DISCARD ...). */
  immediate?: boolean;
  /** The command is asynchronous, which a transaction does not support. */
  mayNotQueue?: boolean;
  subcommands?: readonly CommandSpec<C>[];
}

/** Keys of one-key commands. */
export const firstKey: KeyRange = { first: 1, last: 1, step: 1 };
export const allKeys: KeyRange = { first: 1, last: -1, step: 1 };
export const noKeys: KeyRange = { first: 0, last: 0, step: 0 };
