// What the clients of one tenant share, and those of no other see: channels, the slow log, the ACL log, the
// list of clients, counters.

import type { TableSpan } from '../../universal-row/command.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { TenantLimiter } from '../admission/tenant-limiter.ts';
import { AclLog } from './acl/acl-log.ts';
import { Refusals } from './admission/refusals.ts';
import { FanOut } from './fan-out.ts';
import { PubSub, type Subscriber } from './pubsub.ts';
import { Slowlog, type SlowlogLimits } from './slowlog.ts';
import { TenantScripts } from './tenant-scripts.ts';

/** `C` is a connection of its clients. */
export class Tenant<C extends Subscriber = Subscriber> {
  readonly number: number;
  definition: TenantDefinition;
  /** The tables that are its databases. */
  span: TableSpan;
  /** Those that are logged in. */
  readonly connections = new Set<C>();
  readonly pubsub = new PubSub();
  readonly fanOut = new FanOut();
  readonly slowlog: Slowlog;
  readonly aclLog = new AclLog();
  readonly scripts = new TenantScripts();
  /** Absent while what its clients spend is not limited. */
  limiter: TenantLimiter | undefined;
  /** What scans have to pass before it; absent while they have no limit of their own. */
  scanLimiter: TenantLimiter | undefined;
  /** It has one of them. */
  isLimited: boolean;
  readonly refusals = new Refusals();
  /** Connections that have gone, and what they did. */
  readonly past = { connections: 0, commands: 0, bytesIn: 0, bytesOut: 0 };
  rejectedConnections = 0;
  errors = 0;

  constructor(
    definition: TenantDefinition,
    slowlogLimits: SlowlogLimits,
    limiter: TenantLimiter | undefined,
    scanLimiter: TenantLimiter | undefined,
  ) {
    this.number = definition.number;
    this.limiter = limiter;
    this.scanLimiter = scanLimiter;
    this.isLimited = limiter !== undefined || scanLimiter !== undefined;
    this.definition = definition;
    this.span = spanOf(definition);
    this.slowlog = new Slowlog(slowlogLimits);
  }

  /** The server's own tenant, whose users look after all of it. */
  get isFirst(): boolean {
    return this.number === 0;
  }

  /** Its limiters are others. */
  setLimiters(limiter: TenantLimiter | undefined, scanLimiter: TenantLimiter | undefined): void {
    this.limiter = limiter;
    this.scanLimiter = scanLimiter;
    this.isLimited = limiter !== undefined || scanLimiter !== undefined;
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

/** What is told to a client beyond the limit. */
export function tooManyClients({ definition }: Tenant): string {
  const { name, limits } = definition;
  return `ERR max number of clients reached: tenant '${name}' may have ${limits.connections} (limit connections)`;
}
