// Scripts of clients of other processes. They are looked up and run by the pod's own tables: nothing of the client is here
// but its tenant.

import type { Arguments } from '../../universal-row/arguments.ts';
import { Action, type Transform } from '../../universal-row/command.ts';
import { CommandError } from '../../universal-row/errors.ts';
import { evalTransform } from '../../universal-row/transforms/redis/scripts/eval.ts';
import type {
  ScriptCommand,
  ScriptHost,
} from '../../universal-row/transforms/redis/scripts/host.ts';
import { ownCommands } from '../../universal-row/transforms/redis/scripts/own-commands.ts';
import { ScriptCache } from '../../universal-row/transforms/redis/scripts/script.ts';
import { namedTransforms } from '../../universal-row/transforms/redis/registry.ts';

/** What runs scripts, behind the transforms of the registry in the list of names. */
export const scriptNames = ['eval', 'evalsha', 'eval_ro', 'evalsha_ro'] as const;

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

/** What a script publishes. */
export interface ScriptMessage {
  readonly channel: Buffer;
  readonly payload: Buffer;
  readonly isSharded: boolean;
}

/** Messages that one script may publish. */
const maxMessages = 100_000;

/** Scripts of one command of a tenant, on one pod. */
class NodeScriptHost implements ScriptHost {
  /** To be sent once what the command has written is settled. */
  messages: ScriptMessage[] = [];
  readonly #refusal: (grows: boolean) => string | undefined;
  readonly #mayPublish: boolean;

  constructor(refusal: (grows: boolean) => string | undefined, mayPublish: boolean) {
    this.#refusal = refusal;
    this.#mayPublish = mayPublish;
  }

  command(args: Arguments): ScriptCommand | undefined {
    if (args.lens[0]! > 32) return undefined;
    const name = args.text(0).toLowerCase();
    const found = byName.get(name);
    if (found !== undefined || args.count < 2 || args.lens[1]! > 32) return found;
    return byName.get(`${name}|${args.text(1).toLowerCase()}`);
  }

  /** Gateways send scripts of clients only that may do all. */
  denial(): undefined {
    return undefined;
  }

  refusal(grows: boolean): string | undefined {
    return this.#refusal(grows);
  }

  calling(command: ScriptCommand): void {
    command.calls++;
  }

  failed(): void {}

  begin(): void {
    if (this.messages.length > 0) this.messages = [];
  }

  /** How many clients of all nodes listen is not known: so nobody is counted. */
  publish(channel: string, message: string, isSharded: boolean): number {
    if (!this.#mayPublish) throw noPublish;
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

  running(): () => void {
    return () => {};
  }
}

export interface NodeScript {
  readonly name: string;
  readonly run: Transform;
  readonly action: Action;
  /** What the last run has to send. */
  readonly host: { readonly messages: readonly ScriptMessage[] };
}

export class NodeScripts {
  readonly #caches = new Map<number, ScriptCache>();

  #cacheOf(tenant: number): ScriptCache {
    let cache = this.#caches.get(tenant);
    if (cache === undefined) this.#caches.set(tenant, (cache = new ScriptCache()));
    return cache;
  }

  /** The transform of the `number`th of `scriptNames`; undefined when there are not as many. */
  transform(
    number: number,
    tenant: number,
    refusal: (grows: boolean) => string | undefined,
    mayPublish: boolean,
  ): NodeScript | undefined {
    const name = scriptNames[number];
    if (name === undefined) return undefined;
    const isReadOnly = name.endsWith('_ro');
    const host = new NodeScriptHost(refusal, mayPublish);
    const isSha = name.startsWith('evalsha');
    const run = evalTransform(host, this.#cacheOf(tenant), isSha, isReadOnly);
    return { name, run, action: isReadOnly ? Action.query : Action.update, host };
  }

  /** SCRIPT LOAD, or with '' SCRIPT FLUSH, at a gateway. */
  load(tenant: number, source: string): void {
    const cache = this.#cacheOf(tenant);
    if (source === '') {
      cache.flush();
      return;
    }
    try {
      cache.take(source).isLoaded = true;
    } catch (error) {
      // The gateway has found the same, and told its client.
      if (!(error instanceof CommandError)) throw error;
    }
  }
}
