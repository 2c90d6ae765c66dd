// Every request of every protocol becomes one of these. The action has the properties that the
// gateway and the pod need (whether it is a write, whether it touches many rows); the transform is
// the model's own part.

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
  /** Reply to commands that wait too long for tables held by this command's long form. */
  readonly busy?: BusyReply | undefined;
}

export interface BusyReply {
  readonly text: string;
  /** Milliseconds from when the long form begins; Infinity for never. */
  readonly afterMs: number;
}

/** Tables that a client addresses by its own numbers: number n is table `first + n`, for n below `count`. */
export interface TableSpan {
  readonly first: number;
  readonly count: number;
}

/** Upper bound of client numbers within one node. */
const clientsPerNode = 2 ** 32;

/** `Command.client` for another node's client; clients of this node have node 0. */
export function clientOfNode(node: number, client: number): number {
  return node * clientsPerNode + client;
}

/** The number that the client has at its node. */
export function numberAtNode(client: number, node: number): number | undefined {
  return Math.floor(client / clientsPerNode) === node ? client % clientsPerNode : undefined;
}

/**
 * The command was not run here, and may be run elsewhere or later; if its outcome is unknown, it is
 * a read, or has a number (`Command.once`).
 */
export interface NotRun {
  /** `replaced`: other partitions have replaced this one permanently. The command was not run here and never will be. */
  readonly why: 'notLeader' | 'moved' | 'replaced' | 'unreachable' | 'unknown';
  /** Number of the node that leads, as far as known; 0 if unknown. */
  readonly leader: number;
}

/** Staleness bounds of a read. Infinity for a bound that does not apply. */
export interface ReadBounds {
  readonly maxStalenessMs: number;
  /** Entries of the log that are committed, and not in the state. */
  readonly maxLagEntries: number;
  /** State the client has read: the replica's state must include all of it. */
  readonly session?: ReadSession;
}

/** State a client has read, as a log index for each replication group. */
export interface ReadSession {
  /** Log index that the state of a group must include; Infinity if the index is unknown, as after a write. */
  needs(group: number): number;
  /** The client is answered from the state of an index. */
  saw(group: number, index: number): void;
  /** A command of the client is done by a leader. */
  moved(): void;
}

/** One request. A connection reuses its object: code that keeps one beyond `execute` copies it. */
export interface Command {
  action: Action;
  /** Name of the transform, by which a node elsewhere finds it. */
  name: string;
  transform: Transform;
  /** Refused when memory is at its limit. */
  grows: boolean;
  /** Number of the table on which the command starts. The table is one of `span`. */
  table: number;
  /** The tables it can reach. */
  span: TableSpan;
  /** The command uses tables of the span other than its first. */
  usesSpan?: boolean | undefined;
  args: Arguments;
  /** Counts the work done in the store; absent where it is not metered. */
  work?: RowWork | undefined;
  /** The tenant whose time slices the steps of the command use. */
  tenant?: number | undefined;
  /** The command does not count as a use of the rows it finds. */
  isPeeking?: boolean | undefined;
  /** Id of the client that sent the command, for reports of changes. */
  client?: number | undefined;
  /** Whether the client has disconnected: a long command that only reads then ends. */
  isAbandoned?: boolean | undefined;
  /**
   * The command concerns the gateway, which runs it at its position in a transaction; remote pods
   * do not run it.
   */
  isLocal?: boolean | undefined;
  /**
   * Why the command must run in this process: the error where it would have to be sent elsewhere.
   */
  onlyHere?: string | undefined;
  /**
   * Set beside an error when the pod cannot serve the command at present; of commands that run as
   * one, on the first. The reader resets it.
   */
  notRun?: NotRun | undefined;
  /**
   * Of commands that run as one, on the first: all of them were undone after they had begun, and one error answers them. The
   * reader resets it.
   */
  isUndone?: boolean | undefined;
  /** For scripts: rights of the user, for remote pods; absent if unrestricted. */
  rights?: string | undefined;
  /** For EVALSHA: the script, if this node knows it, to be sent to remote pods. */
  script?: { readonly source: string } | undefined;
  /**
   * Staleness bounds of a read that a follower may answer; undefined if the read needs the latest
   * state.
   */
  bounds?: ReadBounds | undefined;
  /** Name of a command with the same keys, if that is not `name`. The command is routed like that one. */
  likeCommand?: string | undefined;
  /** Whether the command undoes its own writes, so that it can safely run twice. */
  leavesNothing?: boolean | undefined;
  /**
   * Whether the command is a part of a command on a whole table. Such a part is invalid once the table is divided
   * differently.
   */
  isPart?: boolean | undefined;
  /**
   * Number of a write that may already have been applied elsewhere and must not be applied twice:
   * see once.ts.
   */
  once?: number | undefined;
  /**
   * For a command whose answer may be written in a later tick than the one in which it has run; of commands that run as one, on the
   * first. Its executors add functions that make the answers of the current tick wait until what it did, and saw, is in the
   * log: `holdAnswer` calls them just before the answer is written.
   */
  holds?: (() => void)[] | undefined;
  /** `holds` has all that the answer depends on: where it is empty, the outcome of the command is known already. */
  hasAllHolds?: boolean | undefined;
  /**
   * Reply in a transaction where the command would otherwise block. `transform` sends it; remote
   * pods are told.
   */
  onEmpty?: 'nil' | 'nilArray' | undefined;
}

/** A function that calls all of these; undefined if there are none. */
export function together(holds: readonly (() => void)[]): (() => void) | undefined {
  if (holds.length === 0) return undefined;
  return () => {
    for (const hold of holds) hold();
  };
}

/** The answer to the command is about to be written. True if no log of this process can lose what it depends on. */
export function holdAnswer(command: Pick<Command, 'holds' | 'hasAllHolds'>): boolean {
  const { holds = [], hasAllHolds } = command;
  command.holds = command.hasAllHolds = undefined;
  for (const hold of holds) hold();
  return hasAllHolds === true && holds.length === 0;
}
