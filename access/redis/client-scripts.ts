// What scripts may do on behalf of one client.

import type { Arguments } from '../../universal-row/arguments.ts';
import type { Transform } from '../../universal-row/command.ts';
import { evalTransform } from '../../universal-row/transforms/redis/scripts/eval.ts';
import { fcallTransform } from '../../universal-row/transforms/redis/scripts/functions.ts';
import type {
  RunningScript,
  ScriptHost,
} from '../../universal-row/transforms/redis/scripts/host.ts';
import { scriptRefusal } from './acl/guard.ts';
import { type Client, ClientFlag } from './client.ts';
import type { CommandEntry } from './commands/registry.ts';

const logLevels = ['info', 'info', 'info', 'warn'] as const;
const maxLogCharacters = 1024;
/** Messages that one script may publish. */
const maxMessages = 100_000;

interface Message {
  readonly channel: Buffer;
  readonly payload: Buffer;
  readonly isSharded: boolean;
}

/** One client's scripts. */
export class ClientScripts implements ScriptHost {
  readonly #client: Client;
  #messages: Message[] = [];
  readonly #transforms = new Map<string, Transform>();

  constructor(client: Client) {
    this.#client = client;
  }

  /** EVAL, or EVALSHA; `isReadOnly` for the forms with _RO. */
  transform(isSha: boolean, isReadOnly: boolean): Transform {
    const name = `${isSha} ${isReadOnly}`;
    let transform = this.#transforms.get(name);
    if (transform === undefined) {
      transform = evalTransform(this, this.#client.tenant.scripts.cache, isSha, isReadOnly);
      this.#transforms.set(name, transform);
    }
    return transform;
  }

  /** FCALL, or FCALL_RO. */
  fcall(isReadOnly: boolean): Transform {
    const name = `fcall ${isReadOnly}`;
    let transform = this.#transforms.get(name);
    if (transform === undefined) {
      transform = fcallTransform(this, this.#client.tenant.scripts.functions, isReadOnly);
      this.#transforms.set(name, transform);
    }
    return transform;
  }

  command(args: Arguments): CommandEntry | undefined {
    const entry = this.#client.server.registry.lookup(args);
    return entry?.subcommands === undefined || args.count < 2 ? entry : entry.subcommand(args);
  }

  denial(command: CommandEntry, args: Arguments): string | undefined {
    const client = this.#client;
    return (client.flags & ClientFlag.restricted) === 0
      ? undefined
      : scriptRefusal(client, command, args);
  }

  refusal(grows: boolean): string | undefined {
    const { server, table } = this.#client;
    return server.router.to(table).executor.refusal({ table, grows });
  }

  begin(): void {
    if (this.#messages.length > 0) this.#messages = [];
  }

  publish(channel: string, message: string, isSharded: boolean): number {
    const name = Buffer.from(channel, 'latin1');
    const audiences = this.#client.tenant.pubsub.audiences(name, isSharded);
    let receivers = 0;
    for (const { listeners } of audiences) receivers += listeners.size;
    if (receivers > 0 && this.#messages.length < maxMessages) {
      const payload = Buffer.from(message, 'latin1');
      this.#messages.push({ channel: name, payload, isSharded });
    }
    return receivers;
  }

  /** The scripts of a command are done: what they have published leaves. */
  flush(): void {
    if (this.#messages.length === 0) return;
    const { pubsub, fanOut } = this.#client.tenant;
    for (const message of this.#messages.splice(0)) {
      const audiences = pubsub.audiences(message.channel, message.isSharded);
      let receivers = 0;
      for (const { listeners } of audiences) receivers += listeners.size;
      if (receivers > 0) void fanOut.send(message, audiences, receivers);
    }
  }

  log(level: number, text: string): void {
    const { server, tenant } = this.#client;
    const message = Buffer.from(text.slice(0, maxLogCharacters), 'latin1').toString();
    server.report(logLevels[level] ?? 'info', `script: ${message}`, {
      tenant: tenant.definition.name,
    });
  }

  running(script: RunningScript): () => void {
    const { running } = this.#client.tenant.scripts;
    running.add(script);
    return () => running.delete(script);
  }
}
