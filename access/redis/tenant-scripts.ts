// Script state shared by the clients of one tenant.

import type { Arguments } from '../../universal-row/arguments.ts';
import type { Transform } from '../../universal-row/command.ts';
import { CommandError } from '../../universal-row/errors.ts';
import { changing } from '../../universal-row/transforms/redis/scripts/function-commands.ts';
import { FunctionLibraries } from '../../universal-row/transforms/redis/scripts/functions.ts';
import type { RunningScript } from '../../universal-row/transforms/redis/scripts/host.ts';
import {
  ScriptCache,
  type ScriptFlags,
} from '../../universal-row/transforms/redis/scripts/script.ts';

/** A script that takes many steps, as its tenant's clients meet it. */
export interface LongScript {
  readonly script: RunningScript;
  /** Selected by its client. */
  readonly table: number;
  /** A function that FCALL has called. */
  readonly isFunction: boolean;
  /** The command that called it. */
  readonly words: readonly Buffer[];
}

/** Commands that are not about rows and are run all the same while a script is busy, as Redis runs them. */
const allowedWhileBusy: ReadonlySet<string> = new Set([
  'auth',
  'discard',
  'function|kill',
  'function|stats',
  'hello',
  'multi',
  'quit',
  'reset',
  'script|kill',
  'shutdown',
  'unwatch',
  'watch',
]);

/** Milliseconds by which the timer that refuses waiting commands may fire early. */
const earlyMs = 2;

export const busyWithScript =
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.';
export const busyWithFunction =
  'BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.';

type Change = (libraries: FunctionLibraries) => Transform;

export class TenantScripts {
  readonly cache = new ScriptCache();
  readonly functions = new FunctionLibraries();
  /** Scripts with many steps. */
  readonly running = new Set<LongScript>();
  readonly #transforms = new Map<Change, Transform>();

  /** Why a client of a table may not run a command just now, if a script has held the table for too long. */
  busyText(table: number, command: string, afterMs: number): string | undefined {
    if (allowedWhileBusy.has(command)) return undefined;
    for (const { script, table: held, isFunction } of this.running) {
      if (held !== table || performance.now() - script.startedAt < afterMs - earlyMs) continue;
      return isFunction ? busyWithFunction : busyWithScript;
    }
    return undefined;
  }

  /** Whether the command calls a script or function that says of itself that it writes nothing. */
  isReading(command: string, args: Arguments): boolean {
    switch (command) {
      case 'eval':
        return this.#flagsOf(args)?.noWrites === true;
      case 'evalsha':
        return this.cache.bySha(args.latin1(1, 64))?.flags.noWrites === true;
      case 'fcall':
        return this.functions.find(args.latin1(1, 1024))?.flags.has('no-writes') === true;
      default:
        return false;
    }
  }

  /** Flags of a script as it was sent; undefined for one that does not compile. */
  #flagsOf(args: Arguments): ScriptFlags | undefined {
    try {
      return this.cache.take(args.latin1(1)).flags;
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      return undefined;
    }
  }

  /** The transform of a command that changes the libraries. */
  changing(change: Change): Transform {
    let transform = this.#transforms.get(change);
    if (transform === undefined) {
      transform = changing(change, this.functions);
      this.#transforms.set(change, transform);
    }
    return transform;
  }
}
