// Changes of users by clients of a plane (ACL SETUSER, CREATE USER), executed by the control plane.

import type { AuditLog } from '../../control/admin/audit/audit-log.ts';
import { withoutSecrets } from '../../control/admin/audit/without-secrets.ts';
import type { TenantCatalog } from '../../control/tenants/tenant-catalog.ts';
import type { ControlHandlers } from './messages.ts';

/** `plane` is the plane of the clients. Every change writes an audit record, like a change through the admin API. */
export function userHandlers(
  plane: string,
  tenants: TenantCatalog,
  audit: AuditLog,
): Pick<ControlHandlers, 'setUser' | 'dropUser'> {
  const audited = async <T>(
    method: string,
    { tenant, name }: { tenant: string; name: string },
    change: Readonly<Record<string, unknown>> | undefined,
    make: () => Promise<T>,
  ): Promise<T> => {
    const entry = {
      at: Date.now(),
      who: `a ${plane} client`,
      role: 'tenant',
      tenant,
      address: '',
      method,
      path: `/v1/tenants/${tenant}/users/${name}`,
      ...(change === undefined ? {} : { change }),
    } as const;
    try {
      const made = await make();
      await audit.append({ ...entry, status: 200 });
      return made;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      await audit.append({ ...entry, status: 409, error: reason });
      throw error;
    }
  };
  return {
    setUser: (request) => {
      const change = withoutSecrets({ ...request.change }, undefined, ['secrets']);
      return audited('PATCH', request, change, () => tenants.setUser(request));
    },
    dropUser: (user) =>
      audited('DELETE', user, undefined, () => tenants.dropUser(user.tenant, user.name)),
  };
}
