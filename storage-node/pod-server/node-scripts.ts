// Scripts and functions of clients of other processes. They are looked up and run by the pod's own tables: nothing of the
// client is here but its tenant, and the rules of its user.

import type { Arguments } from '../../universal-row/arguments.ts';
import {
  Action,
  type BusyReply,
  type Command,
  type Transform,
} from '../../universal-row/command.ts';
import { CommandError } from '../../universal-row/errors.ts';
import { evalTransform } from '../../universal-row/transforms/redis/scripts/eval.ts';
import {
  changing,
  dumpRows,
  libraryChanges,
} from '../../universal-row/transforms/redis/scripts/function-commands.ts';
import {
  fcallTransform,
  FunctionLibraries,
} from '../../universal-row/transforms/redis/scripts/functions.ts';
import type {
  RunningScript,
  ScriptCommand,
  ScriptHost,
} from '../../universal-row/transforms/redis/scripts/host.ts';
import { dryRunPrefix } from '../../universal-row/transforms/redis/scripts/dry-run.ts';
import { ownCommands } from '../../universal-row/transforms/redis/scripts/own-commands.ts';
import { ScriptCache } from '../../universal-row/transforms/redis/scripts/script.ts';
import { namedTransforms } from '../../universal-row/transforms/redis/registry.ts';

/** Commands that run scripts, listed after the transforms of the registry. */
const callers = ['eval', 'evalsha', 'eval_ro', 'evalsha_ro', 'fcall', 'fcall_ro'] as const;
export const scriptNames = [
  ...callers,
  'function|dump',
  ...Object.keys(libraryChanges),
  ...callers.map((name) => dryRunPrefix + name),
];

/** Words that one step can take: commands that wait begin to wait for all their keys in one. */
const maxWaitingWords = 1024;

const noPublish = new CommandError(
  'ERR a script cannot publish where its table is in another process',
);

function* commands(): Generator<ScriptCommand> {
  for (const { name, run, action, grows, arity, waits, isAllowedInScripts } of namedTransforms) {
    const most = waits ? maxWaitingWords : Infinity;
    const takes = (count: number): boolean =>
      arity >= 0 ? count === arity : count >= -arity && count <= most;
    yield {
      fullName: name,
      run,
      action,
      grows,
      isAllowedInScripts,
      calls: 0,
      rejectedCalls: 0,
      failedCalls: 0,
      takes,
    };
  }
  for (const fullName of ownCommands.keys()) {
    yield {
      fullName,
      run: undefined,
      action: Action.fetch,
      grows: false,
      isAllowedInScripts: false,
      calls: 0,
      rejectedCalls: 0,
      failedCalls: 0,
      takes: (count) => count >= (fullName === 'ping' || fullName === 'time' ? 1 : 2),
    };
  }
}

const byName = new Map(Array.from(commands(), (one) => [one.fullName, one]));

/** A message published by a script. */
export interface ScriptMessage {
  readonly channel: Buffer;
  readonly payload: Buffer;
  readonly isSharded: boolean;
}

/** Messages that one script may publish. */
const maxMessages = 100_000;
/** Arguments of a command shown by FUNCTION STATS. */
const maxShownWords = 128;
const maxShownBytes = 1024;

/** A script or function that takes many steps, and the command that called it. */
interface LongNodeScript {
  readonly script: RunningScript;
  readonly table: number;
  readonly isFunction: boolean;
  readonly words: readonly Buffer[];
}

/** State shared by a tenant's scripts on a node, for clients of all nodes. */
export interface TenantScriptState {
  readonly cache: ScriptCache;
  readonly functions: FunctionLibraries;
  /** Reply to commands that wait too long for the tables of a long script. */
  busyReply(isFunction: boolean): BusyReply | undefined;
  /** One continues step by step, until the function that is returned is called. */
  running(long: LongNodeScript): () => void;
  /**
   * Like `ScriptHost`'s, for a user with these rights (`Command.rights`), '' if unrestricted;
   * `table` as the server counts.
   */
  denial(rights: string, command: string, args: Arguments, table: number): string | undefined;
}

function ownState(): TenantScriptState {
  return {
    cache: new ScriptCache(),
    functions: new FunctionLibraries(),
    busyReply: () => undefined,
    running: () => () => undefined,
    denial: (rights) => (rights === '' ? undefined : noRules),
  };
}

const noRules = 'ERR the rules of the user are not known here';

/** Services a command needs from its caller. */
interface ScriptCaller {
  readonly state: TenantScriptState;
  readonly command: Command;
  readonly rights: string;
  readonly isFunction: boolean;
  readonly refusal: (grows: boolean) => string | undefined;
  readonly mayPublish: boolean;
}

/** Scripts of one command of a tenant, on one pod. */
class NodeScriptHost implements ScriptHost {
  /** Messages to send once the command's writes are settled. */
  messages: ScriptMessage[] = [];
  readonly isDryRun: boolean;
  readonly #caller: ScriptCaller;

  constructor(caller: ScriptCaller, isDryRun: boolean) {
    this.#caller = caller;
    this.isDryRun = isDryRun;
  }

  command(args: Arguments): ScriptCommand | undefined {
    if (args.lens[0]! > 32) return undefined;
    const name = args.text(0).toLowerCase();
    const found = byName.get(name);
    if (found !== undefined || args.count < 2 || args.lens[1]! > 32) return found;
    return byName.get(`${name}|${args.text(1).toLowerCase()}`);
  }

  denial({ fullName }: ScriptCommand, args: Arguments, table: number): string | undefined {
    const { state, rights, command } = this.#caller;
    return state.denial(rights, fullName, args, command.span.first + table);
  }

  refusal(grows: boolean): string | undefined {
    return this.#caller.refusal(grows);
  }

  calling(command: ScriptCommand): void {
    if (!this.isDryRun) command.calls++;
  }

  failed(): void {}

  begin(): void {
    this.unpublish();
  }

  unpublish(): void {
    if (this.messages.length > 0) this.messages = [];
  }

  /** The number of listeners on all nodes is unknown, so 0 is returned. */
  publish(channel: string, message: string, isSharded: boolean): number {
    if (!this.#caller.mayPublish) throw noPublish;
    if (this.messages.length < maxMessages) {
      this.messages.push({
        channel: Buffer.from(channel, 'latin1'),
        payload: Buffer.from(message, 'latin1'),
        isSharded,
      });
    }
    return 0;
  }

  log(): void {}

  running(script: RunningScript): () => void {
    const { state, command, isFunction } = this.#caller;
    const { table, args } = command;
    const words = Array.from({ length: Math.min(args.count, maxShownWords) }, (_, i) =>
      Buffer.from(args.bytes(i).subarray(0, maxShownBytes)),
    );
    return state.running({ script, table, isFunction, words });
  }
}

export interface NodeScript {
  readonly name: string;
  readonly run: Transform;
  readonly action: Action;
  readonly grows: boolean;
  /** Messages of the last run. */
  readonly host: { readonly messages: readonly ScriptMessage[] };
}

export class NodeScripts {
  readonly #stateOf: ((tenant: number) => TenantScriptState | undefined) | undefined;
  readonly #own = new Map<number, TenantScriptState>();

  /**
   * `stateOf` returns the state shared with clients of this node; without it scripts of links have
   * their own.
   */
  constructor(stateOf?: (tenant: number) => TenantScriptState | undefined) {
    this.#stateOf = stateOf;
  }

  #state(tenant: number): TenantScriptState {
    const shared = this.#stateOf?.(tenant);
    if (shared !== undefined) return shared;
    let state = this.#own.get(tenant);
    if (state === undefined) this.#own.set(tenant, (state = ownState()));
    return state;
  }

  /** The transform of the `number`th of `scriptNames` for a command; undefined when there are not as many. */
  transform(
    number: number,
    tenant: number,
    caller: Omit<ScriptCaller, 'state' | 'isFunction'>,
  ): NodeScript | undefined {
    const name = scriptNames[number];
    if (name === undefined) return undefined;
    const state = this.#state(tenant);
    const { cache, functions } = state;
    const isDryRun = name.startsWith(dryRunPrefix);
    const called = isDryRun ? name.slice(dryRunPrefix.length) : name;
    const isFunction = called.startsWith('fcall');
    const host = new NodeScriptHost({ ...caller, state, isFunction }, isDryRun);
    if (name.startsWith('function|')) {
      const change = libraryChanges[name as keyof typeof libraryChanges] as
        | (typeof libraryChanges)[keyof typeof libraryChanges]
        | undefined;
      const grows = name === 'function|load' || name === 'function|restore';
      if (change === undefined) return { name, run: dumpRows, action: Action.fetch, grows, host };
      return { name, run: changing(change, functions), action: Action.update, grows, host };
    }
    const isReadOnly = called.endsWith('_ro');
    const transform = isFunction
      ? fcallTransform(host, functions, isReadOnly)
      : evalTransform(host, cache, called.startsWith('evalsha'), isReadOnly);
    const run = Object.assign(transform, { busy: state.busyReply(isFunction) });
    return { name, run, action: isReadOnly ? Action.query : Action.update, grows: false, host };
  }

  /** A gateway is about to call a script by its digest. */
  learn(tenant: number, source: string): void {
    try {
      this.#state(tenant).cache.take(source);
    } catch (error) {
      // The gateway has found the same, and told its client.
      if (!(error instanceof CommandError)) throw error;
    }
  }
}
