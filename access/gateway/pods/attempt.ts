// A gateway's request to a group, wherever its leader is; it may be retried.

import type { LocalPod } from '../../../contracts/local-pod.ts';
import { type Command, isWrite } from '../../../universal-row/command.ts';
import type { RowCommands, TransactionWatch } from '../../../universal-row/executor.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import { type NumberedWrite, once } from '../../../universal-row/once.ts';
import { executeTogether } from '../../../universal-row/once-together.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { GroupObservers, GroupPlace } from './group-observers.ts';

/** The sending gateway: the part of a write's number that all writes of a gateway share. */
type Gateway = Pick<NumberedWrite, 'node' | 'incarnation'>;

/** One command, or several commands that run as one. */
export interface Attempt {
  /** The command that holds the reason for a refusal, and the number of the write (`Command.once`). */
  readonly first: Command;
  /** The attempt writes, and gets a number so that a retry is not applied twice. */
  readonly isOnce: boolean;
  /** It may run twice without a number. */
  readonly mayRepeat: boolean;
  /** Whether it may publish messages. These are sent with the answer of the process that has run the script. */
  readonly callsScripts: boolean;
  /** The error to answer if the commands would have to be sent to another process, and may not be. */
  readonly onlyHere: string | undefined;
  /** `mayBeDone`: an earlier attempt, with the same number, may have been applied under another leader. */
  run(place: GroupPlace, reply: Reply, mayBeDone?: boolean): MaybePromise<Reply | void>;
  /** As `run`, at the groups that have taken over the rows. */
  runAt(successor: RowCommands, reply: Reply): MaybePromise<Reply | void>;
}

export function attemptOf(command: Command, gateway: Gateway): Attempt {
  const isOnce = isWrite(command.action) && command.leavesNothing !== true;
  return {
    first: command,
    isOnce,
    mayRepeat: !isOnce,
    get callsScripts() {
      return callsScript(command);
    },
    onlyHere: command.onlyHere,
    run: (place, own, mayBeDone) =>
      mayBeDone === true && !('link' in place)
        ? runOnce(place, command, own, gateway)
        : place.execute(command, own),
    runAt: (successor, own) => successor.execute(command, own),
  };
}

function callsScript({ name }: Command): boolean {
  return /^(eval|fcall)/.test(name);
}

/** Runs on the pod of this process a command that may have run under another leader. */
function runOnce(
  place: LocalPod,
  command: Command,
  reply: Reply,
  gateway: Gateway,
): MaybePromise<Reply | void> {
  const { transform, once: number, span } = command;
  if (number !== undefined) {
    command.transform = once(transform, { ...gateway, number, first: span.first });
  }
  const restore = (): void => {
    command.transform = transform;
  };
  const done = place.execute(command, reply);
  if (done instanceof Promise) return done.finally(restore);
  restore();
}

/** Commands that run as one, unless a row that `watch` observes was touched. */
export class TransactionAttempt implements Attempt {
  readonly first: Command;
  readonly isOnce: boolean;
  readonly mayRepeat: boolean;
  readonly onlyHere: string | undefined;
  readonly #commands: readonly Command[];
  readonly #before: (reply: Reply) => boolean;
  readonly #watch: TransactionWatch | undefined;
  readonly #observers: GroupObservers;
  readonly #gateway: Gateway;

  constructor(
    commands: readonly [Command, ...Command[]],
    before: (reply: Reply) => boolean,
    watch: TransactionWatch | undefined,
    {
      observers,
      gateway,
      isOnce,
    }: { observers: GroupObservers; gateway: Gateway; isOnce: boolean },
  ) {
    this.first = commands[0];
    // A number belongs to one log. Commands that concern only this gateway are in no log.
    this.mayRepeat = !commands.some(({ action, isLocal }) => isLocal !== true && isWrite(action));
    this.isOnce = isOnce && !this.mayRepeat;
    this.onlyHere = commands.find(({ onlyHere }) => onlyHere !== undefined)?.onlyHere;
    this.#commands = commands;
    this.#before = before;
    this.#watch = watch;
    this.#observers = observers;
    this.#gateway = gateway;
  }

  get callsScripts(): boolean {
    return this.#commands.some(callsScript);
  }

  run(place: GroupPlace, reply: Reply, mayBeDone = false): MaybePromise<Reply | void> {
    const watch = this.#watch;
    const watched = watch && this.#observers.watchAt(place, watch);
    if (watched === 'missed') watch!.dirty = true;
    const number = mayBeDone ? this.first.once : undefined;
    if (number !== undefined && !('link' in place)) return this.#runOnce(place, reply, number);
    if (watch?.dirty !== true) {
      return place.executeAll(this.#commands, reply, this.#before, watched as TransactionWatch);
    }
    // A remote replica does not see keys watched in other groups, nor what was missed.
    if (number === undefined) this.#before(reply);
    else if ('link' in place) {
      return place.executeAll(this.#commands, reply, this.#before, watch, true);
    }
  }

  #runOnce(place: LocalPod, reply: Reply, number: number): MaybePromise<Reply | void> {
    const watch = this.#watch;
    const write = { ...this.#gateway, number, first: this.first.span.first };
    return executeTogether(place, this.#commands, reply, write, {
      isClean: () => watch?.dirty !== true,
      begin: (own, hasRun) => {
        if (watch !== undefined) watch.dirty = !hasRun;
        this.#before(own);
      },
    });
  }

  runAt(successor: RowCommands, reply: Reply): MaybePromise<Reply | void> {
    const watch = this.#watch;
    // The watched rows may have changed at the other group.
    if (watch !== undefined && this.#observers.has(watch)) watch.dirty = true;
    return successor.executeAll(this.#commands, reply, this.#before, watch);
  }
}
