// What an attack is: something that a client of a plane sends, with what it may do to the others and to memory.

/** A server under attack. */
export interface Target {
  readonly redisPort: number;
  readonly influxPort: number;
  /** The admin API, as http://127.0.0.1:7070. */
  readonly admin: string;
  /** Of an operator. */
  readonly adminToken: string;
  readonly directory: string;
}

export interface Attack {
  /** As `--only` takes it. */
  readonly name: string;
  /** One line for people. */
  readonly what: string;
  /** Flags of the server. */
  readonly flags?: readonly string[];
  /** Of the default user, where the flags give it one: the other client logs in by it. */
  readonly password?: string;
  /** A folder is made with these permissions before the server starts; none if absent. */
  readonly directoryMode?: number;
  /** Bytes by which resident memory may grow, where it is not `usualGrowthBytes`. */
  readonly growthBytes?: number;
  /** Brings the server into the state that the attack needs. Not measured. */
  readonly prepare?: (target: Target) => Promise<void>;
  /** The attack, once. Repeated until the time is up; resolves when the server has answered or refused. */
  readonly run: (target: Target) => Promise<void>;
  /** What has come of it that should not have: a line, or undefined when all is well. */
  readonly verdict?: (target: Target) => Promise<string | undefined>;
}

const mib = 1024 * 1024;

/**
 * The stated bound of docs/security.md: the default of `*.max-request-memory` of one plane, and half as much for garbage
 * that is not collected yet.
 */
export const usualGrowthBytes = (256 + 128) * mib;
