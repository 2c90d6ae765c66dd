// Every request of every protocol becomes one of these. The action says what the gateway and the pod
// need to know (is it a write, does it touch many rows); the transform is the model's own part.

import type { Arguments } from './arguments.ts';
import type { Reply } from './reply.ts';
import type { RowWork } from './row-work.ts';
import type { Rows } from './rows.ts';
import type { StepTransform } from './steps.ts';

/**
 * fetch reads rows by key, update reads and writes them, put writes blindly, delete removes, scan
 * walks keys, query walks and computes.
 */
export const Action = { fetch: 0, update: 1, put: 2, delete: 3, scan: 4, query: 5 } as const;
export type Action = (typeof Action)[keyof typeof Action];

export function isWrite(action: Action): boolean {
  return action >= Action.update && action <= Action.delete;
}

/**
 * Reads rows, writes rows and answers. A pure function of its input: it may be run again from the
 * start after a `ReadFault`, with all its writes and its answer undone. Throws `CommandError`.
 *
 * A transform whose work is long, by the sizes of rows and arguments, returns its long form before it writes. Its reply
 * so far is discarded, and the long form runs in its place.
 */
export interface Transform {
  (rows: Rows, args: Arguments, reply: Reply): StepTransform | void;
  /** What commands are answered that wait for too long for the tables that its long form holds. */
  readonly busy?: BusyReply | undefined;
}

export interface BusyReply {
  readonly text: string;
  /** Milliseconds from when the long form begins; Infinity for never. */
  readonly afterMs: number;
}

/** The tables that a client knows by numbers of its own: n is table `first + n`, for n below `count`. */
export interface TableSpan {
  readonly first: number;
  readonly count: number;
}

/** Numbers of clients of one node are below. */
const clientsPerNode = 2 ** 32;

/** `Command.client` of another node's client; those of this node have node 0. */
export function clientOfNode(node: number, client: number): number {
  return node * clientsPerNode + client;
}

/** The number that the client has at its node. */
export function numberAtNode(client: number, node: number): number | undefined {
  return Math.floor(client / clientsPerNode) === node ? client % clientsPerNode : undefined;
}

/**
 * Nothing of a command was done, and somewhere else, or later, it may be; where it is unknown what became of it, it is a
 * read, or has a number (`Command.once`).
 */
export interface NotRun {
  readonly why: 'notLeader' | 'moved' | 'unreachable' | 'unknown';
  /** The node that leads, as far as is known; 0 if not. */
  readonly leader: number;
}

/** How old a state a read may be answered from. One that may be of any age has no bounds: Infinity. */
export interface ReadBounds {
  readonly maxStalenessMs: number;
  /** Entries of the log that are committed, and not in the state. */
  readonly maxLagEntries: number;
}

/** One request. A connection reuses its object: code that keeps one beyond `execute` copies it. */
export interface Command {
  action: Action;
  /** Name of the transform, by which a node elsewhere finds it. */
  name: string;
  transform: Transform;
  /** Refused when memory is at its limit. */
  grows: boolean;
  /** Number of the table it begins on, which is one of `span`. */
  table: number;
  /** The tables it can reach. */
  span: TableSpan;
  /** It uses others of them than the one it begins on. */
  usesSpan?: boolean | undefined;
  args: Arguments;
  /** Counts the work done in the store; absent where it is not metered. */
  work?: RowWork | undefined;
  /** The tenant in whose time slices its steps run. */
  tenant?: number | undefined;
  /** It does not count as a use of the rows that it finds. */
  isPeeking?: boolean | undefined;
  /** Id of the client that sent it, for those who follow changes. */
  client?: number | undefined;
  /** The client is gone: a long command that only reads ends. */
  isAbandoned?: boolean | undefined;
  /** It is about the gateway, which runs it in its place among commands of a transaction: pods elsewhere do not. */
  isLocal?: boolean | undefined;
  /** Why it may run in this process only: what is answered where it would have to be sent elsewhere. */
  onlyHere?: string | undefined;
  /**
   * Set beside an error that is answered because the pod is not the one to ask just now; of commands that run as one, on
   * the first. Who takes note of it sets it back.
   */
  notRun?: NotRun | undefined;
  /** Of a script: what its user may do, for pods elsewhere; absent for one who may do all. */
  rights?: string | undefined;
  /** Of EVALSHA: the script, if it is known here, for pods elsewhere. */
  script?: { readonly source: string } | undefined;
  /** Of a read that a replica which follows may answer; undefined where it is to be of the latest state. */
  bounds?: ReadBounds | undefined;
  /** Of a write that may have been done elsewhere already, and is not to be done again: see once.ts. */
  once?: number | undefined;
  /** What is answered in a transaction where the command would wait: `transform` does so; pods elsewhere are told. */
  onEmpty?: 'nil' | 'nilArray' | undefined;
}
