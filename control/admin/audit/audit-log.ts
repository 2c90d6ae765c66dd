// The audit trail of the admin API: caller, action, time, address and outcome. It never holds a secret.
//
// Changes and refusals are on disk before they are answered. There is a trail for each role, so that one role cannot
// push out records of another, and a separate trail for reads, because some programs poll every second. All trails
// share one numbering. Within a trail the space is shared fairly by tenants: a tenant with many records loses its own
// oldest ones. A record has a bounded size.

import type { Disk } from '../../../universal-row/environment.ts';
import { LineLog } from '../../line-log/line-log.ts';
import type { AdminRole } from '../../tenants/admin-token.ts';

export interface AuditRecord {
  seq: number;
  /** Unix milliseconds. */
  at: number;
  /** The caller's name; '' for an unknown caller. */
  who: string;
  role: AdminRole | '';
  /** The caller's tenant. */
  tenant?: string;
  address: string;
  method: string;
  /** Path without its query. */
  path: string;
  /** HTTP status of the response. */
  status: number;
  /** Why it was refused. */
  error?: string;
  /** The requested change. */
  change?: Readonly<Record<string, unknown>>;
}

export type AuditEntry = Omit<AuditRecord, 'seq'>;

export interface AuditFilter {
  /** Only calls by this tenant's callers. */
  tenant?: string | undefined;
  /** Includes reads. */
  looks?: boolean;
}

interface AuditLogOptions {
  disk: Disk;
  directory: string;
  fileBytes?: number;
  report?: (message: string) => void;
}

const mebibyte = 1024 * 1024;

/** Limit of characters kept of each text, and of the whole requested change. */
const longestText = 500;
const longestChange = 2000;

/** Number of files kept of each trail. */
const trailFiles = { operators: 16, tenants: 8, strangers: 2, looks: 4 } as const;
type Trail = keyof typeof trailFiles;
const trails = Object.keys(trailFiles) as Trail[];

export class AuditLog {
  readonly #trails: Readonly<Record<Trail, LineLog<AuditRecord>>>;
  #seq: number;

  private constructor(open: (trail: Trail) => LineLog<AuditRecord>) {
    this.#trails = {
      operators: open('operators'),
      tenants: open('tenants'),
      strangers: open('strangers'),
      looks: open('looks'),
    };
    this.#seq = Math.max(...Object.values(this.#trails).map((log) => log.lastSeq));
  }

  static open(options: AuditLogOptions): AuditLog {
    const common = { fileBytes: 4 * mebibyte, ...options };
    return new AuditLog((name) =>
      LineLog.open({
        ...common,
        name,
        files: trailFiles[name],
        sync: name !== 'looks',
        ...(name === 'strangers' ? {} : { owner: ownerOf }),
      }),
    );
  }

  async append(entry: AuditEntry): Promise<void> {
    const { at, who, role, tenant, ...rest } = bounded(entry);
    // In this order, which `#merged` needs to find a tenant's records.
    const owner = tenant === undefined ? {} : { tenant };
    const record = { seq: ++this.#seq, at, who, role, ...owner, ...rest };
    await this.#trails[trailOf(entry)].append(record);
  }

  /** Records after a number, in order. */
  read(after: number, limit: number, wanted: AuditFilter = {}): AuditRecord[] {
    return this.#merged(wanted, (log, part) => log.read(after, limit, part)).slice(0, limit);
  }

  /** The last records, in order. */
  last(limit: number, wanted: AuditFilter = {}): AuditRecord[] {
    return this.#merged(wanted, (log, part) => log.last(limit, part)).slice(-limit);
  }

  /** Number of the last record. */
  get lastSeq(): number {
    return this.#seq;
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#trails).map((log) => log.close()));
  }

  #merged(
    { tenant, looks = false }: AuditFilter,
    from: (log: LineLog<AuditRecord>, part: string | undefined) => AuditRecord[],
  ): AuditRecord[] {
    // Names have nothing in them that JSON would write otherwise.
    const part = tenant === undefined ? undefined : `"role":"tenant","tenant":"${tenant}"`;
    return trails
      .filter((trail) => looks || trail !== 'looks')
      .flatMap((trail) => from(this.#trails[trail], part))
      .filter((record) => tenant === undefined || record.tenant === tenant)
      .sort((a, b) => a.seq - b.seq);
  }
}

/** Tenants have a part each, and so has each token of an operator or viewer. */
function ownerOf({ tenant, who }: AuditRecord): string {
  return tenant === undefined ? `by ${who}` : `of ${tenant}`;
}

function bounded(entry: AuditEntry): AuditEntry {
  const { who, path, error, change } = entry;
  const text = change === undefined ? '' : JSON.stringify(change);
  return {
    ...entry,
    who: who.slice(0, longestText),
    path: path.slice(0, longestText),
    ...(error === undefined ? {} : { error: error.slice(0, longestText) }),
    ...(text.length > longestChange ? { change: { cut: text.slice(0, longestChange) } } : {}),
  };
}

function trailOf({ role, status, method }: AuditEntry): Trail {
  if (role === '') return 'strangers';
  if (status < 400 && (method === 'GET' || method === 'HEAD')) return 'looks';
  return role === 'tenant' ? 'tenants' : 'operators';
}
