// Services a connection needs from its server, besides those of command handlers.

import type { PartitionAdmission } from '../../contracts/partition-admission.ts';
import type { PodAdmission } from '../../contracts/pod-admission.ts';
import type { StepWatcher } from '../../contracts/step-watcher.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { RequestMemory } from '../admission/request-memory.ts';
import type { ChannelRechecks } from './acl/channel-rechecks.ts';
import type { BlockedClients } from './blocked-clients.ts';
import type { Client, ClientServer } from './client.ts';
import type { ClientPause } from './client-pause.ts';
import type { CommandTick } from './command-tick.ts';
import type { Monitors } from './monitors.ts';
import type { OtherPods } from './other-pods.ts';
import type { OutputWatch } from './output-limits.ts';
import type { ParserLimits } from './resp-parser.ts';
import type { RowChanges } from './row-changes.ts';
import type { Tenant } from './tenant.ts';

/** `C` is the connection. */
export interface ConnectionHost<C extends Client> extends ClientServer {
  readonly tick: CommandTick;
  readonly output: OutputWatch;
  readonly pause: ClientPause;
  readonly monitors: Monitors<Client>;
  readonly otherPods: OtherPods;
  /** Clients that wait for a key. */
  readonly blocked: BlockedClients;
  readonly rechecks: ChannelRechecks;
  readonly changes: RowChanges<C>;
  readonly memory: RequestMemory | undefined;
  /** Ceilings of partitions; absent where there can be none. */
  readonly partitions: PartitionAdmission | undefined;
  readonly podAdmission: PodAdmission | undefined;
  readonly steps: StepWatcher | undefined;
  /** Milliseconds; Infinity when the step watchdog is disabled. */
  readonly stepLimitMs: number;
  /** Milliseconds; Infinity when the slow log is off. */
  readonly slowlogMs: number;
  readonly limits: ParserLimits;
  tenant(definition: TenantDefinition): Tenant<C>;
  countError(tenant: Tenant<C>, text: string): void;
  /** A connection speaks HTTP, and is closed. */
  httpAttempted(connection: C): void;
  /** A client is about to be closed because its queued commands are too large. */
  queryTooLong(connection: C): void;
  /** The connection is gone. */
  forget(connection: C): void;
}
