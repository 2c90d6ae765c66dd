import type { DatabaseInfo, DatabaseName } from '../monitor/database-info.ts';
import type { SlowlogEntry, SlowlogQuery, StepEntry } from '../monitor/slowlog.ts';
import type { AdmissionQuery, TenantAdmission } from '../monitor/tenant-admission.ts';
import type { TopEntry, TopQuery } from '../monitor/top.ts';

/** A data plane, as far as the admin API asks it. */
export interface PlaneAccess {
  readonly name: 'redis' | 'influx';
  admission(query: AdmissionQuery): Promise<TenantAdmission[]>;
  top(query: TopQuery): Promise<TopEntry[]>;
  slowlog(query: SlowlogQuery): Promise<SlowlogEntry[]>;
  steps(query: SlowlogQuery): Promise<StepEntry[]>;
  databases(tenant: number): Promise<DatabaseInfo[]>;
  createDatabase(database: DatabaseName): Promise<void>;
  dropDatabase(database: DatabaseName): Promise<void>;
}
