// Scripts on behalf of one client.

import type { Arguments } from '../../universal-row/arguments.ts';
import type { BusyReply, Command, Transform } from '../../universal-row/command.ts';
import { CommandError } from '../../universal-row/errors.ts';
import { evalTransform } from '../../universal-row/transforms/redis/scripts/eval.ts';
import { fcallTransform } from '../../universal-row/transforms/redis/scripts/functions.ts';
import type {
  RunningScript,
  ScriptHost,
} from '../../universal-row/transforms/redis/scripts/host.ts';
import { scriptRefusal } from './acl/guard.ts';
import { type Client, type ClientCommand, ClientFlag } from './client.ts';
import { PartitionedTable } from './partitions/partitioned-table.ts';
import { receiversOf } from './pubsub.ts';
import type { CommandEntry } from './commands/registry.ts';
import { rightsOf } from './served-scripts.ts';
import { busyWithFunction, busyWithScript, type LongScript } from './tenant-scripts.ts';

const logLevels = ['info', 'info', 'info', 'warn'] as const;
const maxLogCharacters = 1024;
/** Arguments of a command shown by FUNCTION STATS. */
const maxShownWords = 128;
const maxShownBytes = 1024;
/** Commands of one script that clients in MONITOR are shown. */
const maxShownCalls = 1000;
/** Messages that one script may publish. */
const maxMessages = 100_000;

interface Message {
  readonly channel: Buffer;
  readonly payload: Buffer;
  readonly isSharded: boolean;
}

/** Commands that call a script or function. */
const callers = /^(eval|evalsha|fcall)(_ro)?$/;

/** One client's scripts, or dry runs of them. */
export class ClientScripts implements ScriptHost {
  readonly #client: Client;
  readonly #messages: Message[] = [];
  /** Messages of the scripts before this one in its transaction. */
  #messagesBefore = 0;
  #isInTransaction = false;
  /** Commands called, for clients in MONITOR. */
  readonly #shown: string[] = [];
  #hasFailed = false;
  readonly #transforms = new Map<string, Transform>();
  readonly isDryRun: boolean;

  constructor(client: Client, isDryRun = false) {
    this.#client = client;
    this.isDryRun = isDryRun;
  }

  /** The transform of a command that calls a script or function, by its name; undefined for any other. */
  transformOf(name: string): Transform | undefined {
    const [, caller = '', readOnly] = callers.exec(name) ?? [];
    if (caller === '') return undefined;
    const isReadOnly = readOnly !== undefined;
    if (caller === 'fcall') return this.fcall(isReadOnly);
    return this.transform(caller === 'evalsha', isReadOnly);
  }

  /** EVAL, or EVALSHA; `isReadOnly` for the forms with _RO. */
  transform(isSha: boolean, isReadOnly: boolean): Transform {
    const name = `${isSha} ${isReadOnly}`;
    let transform = this.#transforms.get(name);
    if (transform === undefined) {
      const { cache } = this.#client.tenant.scripts;
      transform = Object.assign(evalTransform(this, cache, isSha, isReadOnly), {
        busy: this.#busyReply(busyWithScript),
      });
      this.#transforms.set(name, transform);
    }
    return transform;
  }

  /** FCALL, or FCALL_RO. */
  fcall(isReadOnly: boolean): Transform {
    const name = `fcall ${isReadOnly}`;
    let transform = this.#transforms.get(name);
    if (transform === undefined) {
      const { functions } = this.#client.tenant.scripts;
      transform = Object.assign(fcallTransform(this, functions, isReadOnly), {
        busy: this.#busyReply(busyWithFunction),
      });
      this.#transforms.set(name, transform);
    }
    return transform;
  }

  command(args: Arguments): CommandEntry | undefined {
    const entry = this.#client.server.registry.lookup(args);
    return entry?.subcommands === undefined || args.count < 2 ? entry : entry.subcommand(args);
  }

  denial(command: CommandEntry, args: Arguments, table: number): string | undefined {
    const client = this.#client;
    const { router } = client.server;
    const number = client.tenant.span.first + table;
    const { executor } = router.to(router.tableOf(number));
    if (executor instanceof PartitionedTable) {
      const elsewhere = executor.scriptRefusal(command, args, number);
      if (elsewhere !== undefined) return elsewhere;
    }
    if (client.flags & ClientFlag.tracking && !this.isDryRun)
      client.server.scriptCalled(client, command);
    return (client.flags & ClientFlag.restricted) === 0
      ? undefined
      : scriptRefusal(client, command, args);
  }

  refusal(grows: boolean): string | undefined {
    const { server, table } = this.#client;
    return server.router.to(table).executor.refusal({ table, grows });
  }

  calling(command: CommandEntry, args: Arguments): void {
    if (this.isDryRun) return;
    command.calls++;
    const { monitors } = this.#client.server;
    if (monitors.size > 0 && this.#shown.length < maxShownCalls) {
      this.#shown.push(monitors.scriptLine(this.#client, args));
    }
  }

  failed(text: string): void {
    if (this.isDryRun) return;
    this.#hasFailed = true;
    const { server, tenant } = this.#client;
    server.countError(tenant, text);
  }

  /** Whether a command of the script has failed, and was counted. */
  takeError(): boolean {
    const hasFailed = this.#hasFailed;
    this.#hasFailed = false;
    return hasFailed;
  }

  /** A transaction that calls scripts begins, or begins again. */
  beginTransaction(): void {
    this.#isInTransaction = true;
    this.#messages.length = 0;
    this.#shown.length = 0;
  }

  begin(): void {
    if (!this.#isInTransaction) {
      this.#messages.length = 0;
      this.#shown.length = 0;
    }
    this.#messagesBefore = this.#messages.length;
  }

  publish(channel: string, message: string, isSharded: boolean): number {
    const name = Buffer.from(channel, 'latin1');
    const audiences = this.#client.tenant.pubsub.audiences(name, isSharded);
    const receivers = receiversOf(audiences);
    if (this.isDryRun) return receivers;
    const { elsewhere } = this.#client.server;
    if ((receivers > 0 || elsewhere !== undefined) && this.#messages.length < maxMessages) {
      const payload = Buffer.from(message, 'latin1');
      this.#messages.push({ channel: name, payload, isSharded });
    }
    return receivers;
  }

  get hasMessages(): boolean {
    return this.#messages.length > 0;
  }

  unpublish(): void {
    this.#messages.length = Math.min(this.#messages.length, this.#messagesBefore);
  }

  /**
   * The scripts of a command have ended: shows their calls to MONITOR, and sends their messages.
   */
  flush(): void {
    this.#hasFailed = false;
    this.#isInTransaction = false;
    if (this.#shown.length > 0) {
      for (const line of this.#shown.splice(0))
        this.#client.server.monitors.show(this.#client, line);
    }
    if (this.#messages.length === 0) return;
    const { server, tenant } = this.#client;
    const { pubsub, fanOut } = tenant;
    for (const message of this.#messages.splice(0)) {
      server.elsewhere?.publish(tenant.number, message);
      const audiences = pubsub.audiencesIfQuick(message.channel, message.isSharded);
      // Long names were refused, unless more patterns have come since.
      if (audiences === undefined) continue;
      const receivers = receiversOf(audiences);
      if (receivers > 0) void fanOut.send(message, audiences, receivers);
    }
  }

  log(level: number, text: string): void {
    if (this.isDryRun) return;
    const { server, tenant } = this.#client;
    const message = Buffer.from(text.slice(0, maxLogCharacters), 'latin1').toString();
    server.report(logLevels[level] ?? 'info', `script: ${message}`, {
      tenant: tenant.definition.name,
    });
  }

  running(script: RunningScript): () => void {
    const { tenant, table, entry, arguments: args } = this.#client;
    const { running } = tenant.scripts;
    const words = Array.from({ length: Math.min(args.count, maxShownWords) }, (_, i) =>
      Buffer.from(args.bytes(i).subarray(0, maxShownBytes)),
    );
    const isFunction = entry?.spec.name.startsWith('fcall') === true;
    const long: LongScript = { script, table, isFunction, words };
    running.add(long);
    return () => running.delete(long);
  }

  /** Reply to commands that wait for its tables. */
  #busyReply(text: string): BusyReply {
    const { server } = this.#client;
    return {
      text,
      get afterMs() {
        return server.busyReplyMs;
      },
    };
  }
}

/**
 * Adds to a command the data that a remote pod needs. A script sent by EVAL is known from here on,
 * as SCRIPT EXISTS shows.
 */
export function prepareElsewhere(client: Client, entry: CommandEntry, command: Command): void {
  const { name } = entry.spec;
  const { cache } = client.tenant.scripts;
  command.onlyHere = (entry.spec as ClientCommand).refusalElsewhere?.(client);
  command.rights = client.flags & ClientFlag.restricted ? rightsOf(client) : undefined;
  command.script = name.startsWith('evalsha') ? cache.bySha(command.args.latin1(1, 64)) : undefined;
  if (name !== 'eval' && name !== 'eval_ro') return;
  try {
    cache.take(command.args.latin1(1));
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    command.onlyHere = error.message;
  }
}
