// Scripts of a tenant's clients that are connected to other nodes, where this node leads the rows:
// they share cache, libraries and SCRIPT KILL with those of local clients.

import type { Arguments } from '../../universal-row/arguments.ts';
import type { BusyReply } from '../../universal-row/command.ts';
import type { FunctionLibraries } from '../../universal-row/transforms/redis/scripts/functions.ts';
import type { ScriptCache } from '../../universal-row/transforms/redis/scripts/script.ts';
import { maxObjectLength } from './acl/acl-log.ts';
import { Permissions } from './acl/acl-user.ts';
import { scriptDenialText } from './acl/guard.ts';
import type { Client, ClientServer } from './client.ts';
import { PartitionedTable } from './partitions/partitioned-table.ts';
import type { Tenant } from './tenant.ts';
import { busyWithFunction, busyWithScript, type LongScript } from './tenant-scripts.ts';

/** Sets of rules that are kept compiled. */
const maxCompiled = 1000;

const rulesTexts = new WeakMap<Permissions, string>();

/** `Command.rights` of a client's scripts; undefined for one that may do all. */
export function rightsOf({ user, permissions }: Client): string | undefined {
  if (permissions.isUnlimited) return undefined;
  let text = rulesTexts.get(permissions);
  if (text === undefined) rulesTexts.set(permissions, (text = permissions.text));
  return `${user} ${text}`;
}

export class ServedScripts {
  readonly #server: ClientServer;
  readonly #tenant: Tenant<Client>;
  readonly #compiled = new Map<string, Permissions>();

  constructor(server: ClientServer, tenant: Tenant<Client>) {
    this.#server = server;
    this.#tenant = tenant;
  }

  get cache(): ScriptCache {
    return this.#tenant.scripts.cache;
  }

  get functions(): FunctionLibraries {
    return this.#tenant.scripts.functions;
  }

  busyReply(isFunction: boolean): BusyReply {
    const server = this.#server;
    return {
      text: isFunction ? busyWithFunction : busyWithScript,
      get afterMs() {
        return server.busyReplyMs;
      },
    };
  }

  running(script: LongScript): () => void {
    const { running } = this.#tenant.scripts;
    const long = { ...script, table: this.#server.router.tableOf(script.table) };
    running.add(long);
    return () => running.delete(long);
  }

  /**
   * Why a script may not call a command, if so; `rights` in the format of `rightsOf`, '' if
   * unrestricted.
   */
  denial(rights: string, name: string, args: Arguments, table: number): string | undefined {
    const { router, registry, now } = this.#server;
    const entry = registry.getFull(name)!;
    const { executor } = router.to(router.tableOf(table));
    if (executor instanceof PartitionedTable) {
      const elsewhere = executor.scriptRefusal(entry, args, table);
      if (elsewhere !== undefined) return elsewhere;
    }
    if (rights === '') return undefined;
    const at = rights.indexOf(' ');
    const denial = this.#permissions(rights.slice(at + 1)).check(entry, args);
    if (denial === undefined) return undefined;
    const { reason, word } = denial;
    this.#tenant.aclLog.add({
      ...{ reason, context: 'lua', user: rights.slice(0, at), at: now },
      object: reason === 'command' ? name : args.latin1(word, maxObjectLength),
      client: 'of another node',
    });
    return scriptDenialText(denial);
  }

  #permissions(rules: string): Permissions {
    let permissions = this.#compiled.get(rules);
    if (permissions === undefined) {
      if (this.#compiled.size >= maxCompiled) this.#compiled.clear();
      permissions = Permissions.parse(this.#server.registry, rules);
      this.#compiled.set(rules, permissions);
    }
    return permissions;
  }
}
