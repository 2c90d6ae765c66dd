// A node's part of the cluster-wide figures of INFO, for the node that answers.

import type { Client, ClientServer } from './client.ts';
import { infoFields } from './info.ts';
import { summed } from './info-totals.ts';
import type { Tenant } from './tenant.ts';

const summedSections = ['clients', 'stats', 'ru'] as const;

/** Numbers by the name of their field; of databases `db0.keys` and `db0.expires`, where this node leads. */
export function infoSums(server: ClientServer, tenant: Tenant<Client>): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const section of summedSections) {
    for (const [name, value] of infoFields(section, server, tenant) ?? []) {
      if (summed.has(name)) sums[name] = Number(value);
    }
  }
  const { first, count } = tenant.span;
  for (let db = 0; db < count; db++) {
    const { rows, expiring } = server.facts.tableSize(first + db, true);
    if (rows > 0) Object.assign(sums, { [`db${db}.keys`]: rows, [`db${db}.expires`]: expiring });
  }
  if (tenant.isFirst) sums.used_memory = server.facts.memory().used;
  return sums;
}
