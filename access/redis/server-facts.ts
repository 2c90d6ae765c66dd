// Server state that commands show and change.

import type { UserDefinition } from '../../contracts/tenancy/definitions.ts';

/** One name of CONFIG GET and CONFIG SET. */
export interface ConfigEntry {
  name: string;
  get(): string;
  /** Absent when it cannot be changed at run time. Returns the error of a value. */
  set?(value: string): string | undefined;
}

/** Where users are made and changed for good. Both resolve when it is in force. */
export interface UserKeeper {
  setUser(tenant: string, name: string, change: UserChange): Promise<void>;
  dropUser(tenant: string, name: string): Promise<void>;
}

type UserChange = Partial<Pick<UserDefinition, 'enabled' | 'open' | 'secrets' | 'rules'>>;

/** Memory of rows in bytes. */
export interface MemoryUse {
  /** Memory of live rows and of an empty server: `used_memory`. */
  used: number;
  peak: number;
  /** Memory of a server without rows. */
  startup: number;
  /** Part of `used` that `maxmemory` is not compared with. */
  uncounted: number;
  /** Like `used`, including the free space inside allocated blocks. */
  held: number;
}

/** Facts about the rest of the server for INFO, MEMORY and DEBUG. */
export interface ServerFacts {
  version: string;
  runId: string;
  startedAt: number;
  executable: string;
  configFile: string;
  dataDirectory: string;
  memory(): MemoryUse;
  /** Fields of INFO's Persistence section, in order. */
  persistence(): Record<string, string | number>;
  /** Rows and rows with an expiry of a table; in a cluster those that this node has, or leads: each is led by one node. */
  tableSize(table: number, ifLed?: boolean): { rows: number; expiring: number };
  /** Keys that reading commands found, and did not find. */
  lookups(): { hits: number; misses: number };
  /** Rows dropped to make room: of the tenant with this first table, or of all. */
  evictedRows(firstTable?: number): number;
  expiredRows(): number;
  /** Makes a checkpoint of every engine (SAVE, BGSAVE). */
  checkpoint(): Promise<void>;
  /** Resolves when all that was written before is on disk, whatever the fsync policy. */
  synced(): Promise<void>;
  lastCheckpointAt(): number;
  checkpointInProgress(): boolean;
  /** Stops the whole server (SHUTDOWN). */
  shutdown(): void;
}

export interface ServerCounters {
  connections: number;
  rejectedConnections: number;
  commands: number;
  errors: number;
  bytesIn: number;
  bytesOut: number;
}
