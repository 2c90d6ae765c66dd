// Users as they are made.

import { defaultUser, type UserDefinition } from '../../contracts/tenancy/definitions.ts';

/** In the words of ACL SETUSER. */
export const allRules = '+@all ~* &*';
const noRules = '-@all';

/** The user by whose name alone a tenant logs in. */
export function ownerOf(tenant: string): UserDefinition {
  return {
    ...withoutRights(tenant, defaultUser),
    rules: allRules,
    influxAdmin: true,
  };
}

export function withoutRights(tenant: string, name: string): UserDefinition {
  return {
    tenant,
    name,
    enabled: true,
    open: false,
    secrets: [],
    rules: noRules,
    influxAdmin: false,
    grants: {},
  };
}
