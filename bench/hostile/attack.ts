// An attack: requests of a client of a plane, with the accepted effect on other clients and on
// memory.

/** A server under attack. */
export interface Target {
  readonly redisPort: number;
  readonly influxPort: number;
  /** The admin API, as http://127.0.0.1:7070. */
  readonly admin: string;
  /** Admin token of an operator. */
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
  /** Password of the default user, where the flags set one: the other client logs in by it. */
  readonly password?: string;
  /** A folder is made with these permissions before the server starts; none if absent. */
  readonly directoryMode?: number;
  /** Bytes by which resident memory may grow, where it is not `usualGrowthBytes`. */
  readonly growthBytes?: number;
  /** Brings the server into the state that the attack needs. Not measured. */
  readonly prepare?: (target: Target) => Promise<void>;
  /** The attack, once. Repeated until the time is up; resolves when the server has answered or refused. */
  readonly run: (target: Target) => Promise<void>;
  /** Checks the outcome: a line that describes the problem, or undefined. */
  readonly verdict?: (target: Target) => Promise<string | undefined>;
}

const mib = 1024 * 1024;

/**
 * The stated bound of docs/security.md: the default of `*.max-request-memory` of one plane, and half as much for garbage
 * that is not collected yet.
 */
export const usualGrowthBytes = (256 + 128) * mib;
