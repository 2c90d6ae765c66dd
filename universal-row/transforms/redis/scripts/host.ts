// Services a script needs from the protocol that called it. The access layer implements it.

import type { Arguments } from '../../../arguments.ts';
import type { Action, Transform } from '../../../command.ts';

/** A command as a script calls it. */
export interface ScriptCommand {
  /** `set`, or `object|encoding`. */
  readonly fullName: string;
  readonly action: Action;
  /** Absent for commands that are about connections or the server. */
  readonly run: Transform | undefined;
  /** Refused when memory is at its limit. */
  readonly grows: boolean;
  /** The command uses rows of one table only. */
  readonly isAllowedInScripts: boolean;
  /** How often it was called, was refused before it ran, and failed. */
  calls: number;
  rejectedCalls: number;
  failedCalls: number;
  /** Whether it takes so many words. */
  takes(count: number): boolean;
}

export interface ScriptHost {
  /** Scripts run for what they cost: all that they change is undone, and nothing leaves. */
  readonly isDryRun: boolean;
  /** The command that word 0 names (and word 1, where it has subcommands). */
  command(args: Arguments): ScriptCommand | undefined;
  /**
   * Why the script may not run the command on the table that its rows are in, by its number for the client, if so: its
   * user has not the right, or the keys are elsewhere.
   */
  denial(command: ScriptCommand, args: Arguments, table: number): string | undefined;
  /** Why a writing command would be refused just now, if so. */
  refusal(grows: boolean): string | undefined;
  /** A script is about to run the command. */
  calling(command: ScriptCommand, args: Arguments): void;
  /** A command has failed, or was refused, with this error. */
  failed(text: string): void;
  /** Begins or restarts a run: drops messages published so far, but for those of earlier scripts of its transaction. */
  begin(): void;
  /** Sends a message when the script is done; returns how many clients listen now. */
  publish(channel: string, message: string, isSharded: boolean): number;
  /** Drops messages that the script has published so far: what it did is undone. */
  unpublish(): void;
  log(level: number, text: string): void;
  /** A script continues step by step, until the function that is returned is called. */
  running(script: RunningScript): () => void;
}

/** A script that takes many steps. */
export interface RunningScript {
  readonly name: string;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
  /** The script has written what would stay, so it can no longer be killed. */
  readonly hasWritten: boolean;
  /** Ends it at its next step. */
  kill(): void;
}
