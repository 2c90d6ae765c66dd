// State of one tenant, shared by its clients only: channels, the slow log, the ACL log, the list of
// clients, counters.

import type { TableSpan } from '../../universal-row/command.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { libraryTable } from '../../contracts/tenancy/library-tables.ts';
import type { TenantLimits } from '../admission/tenant-limits.ts';
import { AclLog } from './acl/acl-log.ts';
import { Refusals } from './admission/refusals.ts';
import { ErrorCounts } from './error-counts.ts';
import { FanOut } from './fan-out.ts';
import { PubSub } from './pubsub.ts';
import { Slowlog, type SlowlogLimits } from './slowlog.ts';
import { TenantScripts } from './tenant-scripts.ts';
import { type TrackingClient, TrackingTable } from './tracking.ts';

/** `C` is a connection of its clients. */
export class Tenant<C extends TrackingClient = TrackingClient> {
  readonly number: number;
  definition: TenantDefinition;
  /** The tables that are its databases. */
  span: TableSpan;
  /** The one with its function libraries. */
  readonly libraryTable: number;
  /** Logged-in connections. */
  readonly connections = new Set<C>();
  readonly pubsub = new PubSub();
  readonly fanOut = new FanOut();
  readonly tracking: TrackingTable<C>;
  readonly slowlog: Slowlog;
  readonly aclLog = new AclLog();
  readonly scripts = new TenantScripts();
  /** Its rate limiters; the class limiter is for scans. */
  readonly limits: TenantLimits;
  readonly refusals = new Refusals();
  /** Totals of closed connections. */
  readonly past = { connections: 0, commands: 0, bytesIn: 0, bytesOut: 0 };
  rejectedConnections = 0;
  readonly errors = new ErrorCounts();

  constructor(
    definition: TenantDefinition,
    slowlogLimits: SlowlogLimits,
    limits: TenantLimits,
    clients: ReadonlyMap<number, C>,
  ) {
    this.number = definition.number;
    this.libraryTable = libraryTable(definition.number);
    this.limits = limits;
    this.definition = definition;
    this.span = spanOf(definition);
    this.slowlog = new Slowlog(slowlogLimits);
    this.tracking = new TrackingTable((id) => {
      const client = clients.get(id);
      return client !== undefined && this.connections.has(client) ? client : undefined;
    });
  }

  /** The server's own tenant, whose users look after all of it. */
  get isFirst(): boolean {
    return this.number === 0;
  }

  follow(definition: TenantDefinition): void {
    if (definition === this.definition) return;
    this.definition = definition;
    const span = spanOf(definition);
    if (span.first !== this.span.first || span.count !== this.span.count) this.span = span;
  }

  /** Whether it has as many clients as it may. */
  get isFull(): boolean {
    const { connections } = this.definition.limits;
    return connections > 0 && this.connections.size >= connections;
  }
}

function spanOf({ firstTable, databases }: TenantDefinition): TableSpan {
  return { first: firstTable, count: databases };
}

/** Error for a client beyond the limit. */
export function tooManyClients({ definition }: Tenant): string {
  const { name, limits } = definition;
  return `ERR max number of clients reached: tenant '${name}' may have ${limits.connections} (limit connections)`;
}
