// Interfaces of the client and the server for command handlers. Connection and RedisServer
// implement it; nothing here depends on them, so that the table of commands does not either.

import type { Socket } from 'node:net';
import type { Arguments } from '../../universal-row/arguments.ts';
import type { Transform } from '../../universal-row/command.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { UserDefinition } from '../../contracts/tenancy/definitions.ts';
import type { GatewayAdmission } from '../admission/gateway-admission.ts';
import type { Principal, Principals } from '../gateway/principals.ts';
import type { Router } from '../gateway/router.ts';
import type { Permissions } from './acl/acl-user.ts';
import type { CommandEntry, CommandRegistry } from './commands/registry.ts';
import type { CommandSpec, Handler } from './commands/spec.ts';
import type { Elsewhere } from './elsewhere.ts';
import type { LatencyMonitor } from './latency.ts';
import type { LoginDeadlines } from './login-deadlines.ts';
import type { ConnectionMeter, RedisMetering } from './metering.ts';
import type { Monitors } from './monitors.ts';
import type { ClusterMap } from './cluster-map.ts';
import type { Subscriber } from './pubsub.ts';
import type { Rates } from './rates.ts';
import type { ReadCache } from './read-cache.ts';
import type { ReadMode } from './read-mode.ts';
import type { AnswerKeeper, RespWriter } from './resp-writer.ts';
import type { ConfigEntry, ServerCounters, ServerFacts, UserKeeper } from './server-facts.ts';
import type { Tenant } from './tenant.ts';
import type { TrackingState } from './tracking.ts';

/** Reasons to look closer before a command runs; none of them holds for a plain client. */
export const ClientFlag = {
  none: 0,
  unauthenticated: 1,
  multi: 2,
  subscribed: 4,
  monitor: 8,
  replyOff: 16,
  replySkip: 32,
  /** The command just run was CLIENT REPLY SKIP: the next command gets no answer. */
  replySkipNext: 64,
  /** Not everything is allowed to its user. */
  restricted: 128,
  /** The client caches keys that it reads. */
  tracking: 256,
  /** The server is in cluster mode. */
  cluster: 512,
} as const;

/** Attributes a client reports or chooses. */
export interface ClientAttributes {
  name: string;
  libName: string;
  libVersion: string;
  /** RESP version. */
  version: number;
  noEvict: boolean;
  /** Undefined while it is notified of no changed keys. */
  tracking: TrackingState | undefined;
  noTouch: boolean;
}

export interface Client extends Subscriber, AnswerKeeper, Readonly<ClientAttributes> {
  readonly id: number;
  readonly server: ClientServer;
  readonly socket: Socket;
  readonly address: string;
  readonly localAddress: string;
  /** Wall clock, milliseconds. */
  readonly createdAt: number;
  readonly lastActiveAt: number;
  readonly tenant: Tenant<Client>;
  readonly user: string;
  readonly permissions: Permissions;
  /** The selected database, as the client counts, and the table that this is. */
  readonly db: number;
  readonly table: number;
  /** A sum of `ClientFlag`. */
  readonly flags: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly commandsRun: number;
  readonly meter: ConnectionMeter;
  /** Commands that are queued by MULTI, and their bytes. */
  readonly transaction:
    | { readonly queue: readonly unknown[]; readonly bytes: number; readonly broken: boolean }
    | undefined;
  readonly watchedKeys: number;
  readonly isBlocked: boolean;
  readonly isBusy: boolean;
  /** The socket closes once its output has been sent. */
  readonly closing: boolean;
  /** A handler is being run by EXEC, which does not wait for it. */
  readonly isExecuting: boolean;
  /** Bytes taken in and not run yet. */
  readonly queryBytes: number;
  /** Bytes of its output that have not left yet. */
  readonly unsentBytes: number;
  /** Bytes of the words of the command that runs or ran last, without and with their headers. */
  readonly wordBytes: number;
  readonly commandBytes: number;
  /** Name of the command run last, `NULL` before the first. */
  readonly lastCommand: string;
  /** The command that runs, or ran last. */
  readonly entry: CommandEntry | undefined;
  /** The words of the command that waits. They are not where they were when it began. */
  readonly arguments: Arguments;
  /** Monotonic milliseconds since when its command waits for request units, if it does. */
  readonly unitsWaitSince: number | undefined;

  readonly scripts: ClientScriptCalls;

  /** What it has said of the consistency of its reads; undefined: as the tables have it. */
  readMode: ReadMode | undefined;
  /** It has said READONLY: any replica answers its reads, or the leader, from wherever they are. */
  readsAnywhere: boolean;

  setFlag(flag: number, isSet: boolean): void;
  update(attributes: Partial<ClientAttributes>): void;
  select(db: number): void;
  /** Acts for this user from now on; returns why it may not. */
  become(principal: Principal): string | undefined;
  logOut(): void;
  /** The client is changing its own user: it gets its reply even if that ends its access. */
  setManaging(isManaging: boolean): void;

  beginTransaction(): void;
  endTransaction(): void;
  executeTransaction(reply: RespWriter): void | Promise<Reply | void>;
  /** False when there is no memory for the keys. */
  watchKeys(args: Arguments): boolean;
  /** Resolves when other processes know of the keys; undefined when no other one has to. */
  watchHasBegun(args: Arguments): Promise<unknown> | undefined;
  unwatch(): void;
  /** Ends a wait from outside (CLIENT UNBLOCK); false when there is none. */
  unblockNow(withError: boolean): boolean;

  /**
   * Sends the output since the last command even to a client that wants no replies, as for
   * messages.
   */
  keepReply(): void;
  /** Charges its command for bytes that it sends to others. */
  countFanOut(bytes: number): void;
  /** Replies the error thrown by a handler. */
  writeError(error: unknown, reply: RespWriter): void;
  /** Closes once everything written so far is sent. */
  closeSoon(): void;
  /** Closes at once, after an error as the last bytes. */
  dismiss(error: string): void;
  /** Closes at once. */
  destroy(): void;
}

/** The client's scripts: see client-scripts.ts. */
interface ClientScriptCalls {
  /** EVAL, or EVALSHA; `isReadOnly` for the forms with _RO. */
  transform(isSha: boolean, isReadOnly: boolean): Transform;
  /** FCALL, or FCALL_RO. */
  fcall(isReadOnly: boolean): Transform;
  /** A transaction that calls scripts begins, or begins again: they have published nothing yet. */
  beginTransaction(): void;
  /** Sends the messages published by scripts. */
  flush(): void;
}

export interface ClientServer {
  /** Wall clock, milliseconds. */
  readonly now: number;
  readonly port: number;
  readonly writer: RespWriter;
  readonly facts: ServerFacts;
  /** Id of this node; undefined unless in cluster mode. */
  readonly clusterId: string | undefined;
  /** In cluster mode: the nodes to which clients are redirected, if clients address the leaders themselves. */
  readonly clusterMap: ClusterMap | undefined;
  readonly latency: LatencyMonitor;
  readonly counters: Readonly<ServerCounters>;
  readonly output: { readonly disconnections: number };
  readonly rates: Rates;
  /** Total bytes of all clients, past and present. */
  traffic(): { bytesIn: number; bytesOut: number };
  readonly maxClients: number;
  /** Milliseconds after which clients that wait for a table held by a script get BUSY; Infinity for never. */
  readonly busyReplyMs: number;
  readonly registry: CommandRegistry;
  readonly router: Router;
  readonly config: ReadonlyMap<string, ConfigEntry>;
  readonly principals: Principals;
  readonly users: UserKeeper | undefined;
  readonly logins: LoginDeadlines<Client>;
  readonly tenants: ReadonlyMap<number, Tenant<Client>>;
  readonly connections: ReadonlyMap<number, Client>;
  readonly metering: RedisMetering | undefined;
  readonly cache: ReadCache | undefined;
  readonly monitors: Monitors<Client>;
  readonly admission: GatewayAdmission | undefined;
  countError(tenant: Tenant<Client>, text: string): void;
  /** The other nodes of a cluster, whose subscribers receive messages published here. */
  readonly elsewhere: Elsewhere | undefined;
  report(level: 'info' | 'warn' | 'error', message: string, fields?: object): void;
  permissionsOf(user: UserDefinition): Permissions;
  countListeners(kind: 'channels' | 'patterns' | 'shardChannels'): number;
  totalCommands(): number;
  resetStatistics(): void;
  /** The writer for the client's output. */
  open(client: Client): RespWriter;
  /** Clients whose command waits for the end of CLIENT PAUSE. */
  readonly pausedClients: number;
  /** A script of the client calls a command. */
  scriptCalled(client: Client, entry: CommandEntry): void;
  pauseClients(ms: number, writesOnly: boolean): void;
  unpauseClients(): void;
  /** Shows the client every command of its tenant (MONITOR). */
  addMonitor(client: Client): void;
  /** Resolves when the other nodes report their changes; undefined if there is nothing to wait for. */
  readonly changesAreFollowed: Promise<unknown> | undefined;
  /** Enables notifications of changed keys for the client; undefined disables them. */
  track(client: Client, state: TrackingState | undefined): void;
}

/** A row of the command table whose handler receives a `Client`. */
export type ClientCommand = CommandSpec<Client>;
export type ClientHandler = Handler<Client>;
