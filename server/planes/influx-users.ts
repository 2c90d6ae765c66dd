// CREATE USER, GRANT and their like, carried to the control plane.

import type { Principals } from '../../access/gateway/principals.ts';
import { hashPassword } from '../../access/gateway/secrets.ts';
import type { UserChange } from '../../access/influx/statements/user-directory.ts';
import type { ChangeUsers, Changer } from '../../access/influx/tenants/tenant-users.ts';
import type { Privilege, UserDefinition } from '../../contracts/tenancy/definitions.ts';
import type { ControlCalls, UserRequest } from './messages.ts';

/** Requests to the control plane; answered once the change is in force here, too. */
export interface UserKeeper {
  setUser(request: UserRequest): Promise<unknown>;
  dropUser(user: Parameters<ControlCalls['dropUser']>[0]): Promise<unknown>;
}

export function userChanges(principals: Principals, keeper: UserKeeper): ChangeUsers {
  // One at a time of a tenant: a grant is added to those there are.
  const last = new Map<string, Promise<void>>();
  return async (changer, change) => {
    const { tenant } = changer;
    const before = last.get(tenant) ?? Promise.resolve();
    const made = before.then(() => make(principals, keeper, changer, change));
    const settled = made.catch(() => {});
    last.set(tenant, settled);
    try {
      await made;
    } finally {
      if (last.get(tenant) === settled) last.delete(tenant);
    }
  };
}

async function make(
  principals: Principals,
  keeper: UserKeeper,
  { tenant }: Changer,
  change: UserChange,
): Promise<void> {
  const name = change.user;
  if (change.kind === 'dropUser') {
    await keeper.dropUser({ tenant, name });
    return;
  }
  const user = principals.user(tenant, name);
  await keeper.setUser({
    tenant,
    name,
    expect: change.kind === 'createUser' ? 'new' : 'there',
    change: await partsOf(tenant, change, user),
  });
}

async function partsOf(
  tenant: string,
  change: Exclude<UserChange, { kind: 'dropUser' }>,
  user: UserDefinition | undefined,
): Promise<UserRequest['change']> {
  switch (change.kind) {
    case 'createUser':
      return {
        enabled: true,
        open: false,
        secrets: [await secretOf(tenant, change.password)],
        influxAdmin: change.admin,
      };
    case 'setPassword':
      return { open: false, secrets: [await secretOf(tenant, change.password)] };
    case 'setAdmin':
      return { influxAdmin: change.admin };
    case 'setGrant':
      return { grants: withGrant(user?.grants ?? {}, change.database, change.privilege) };
  }
}

async function secretOf(tenant: string, password: string): Promise<string> {
  if (password === '') throw new Error('password required');
  return await hashPassword(Buffer.from(password), tenant);
}

function withGrant(
  grants: Readonly<Record<string, Privilege>>,
  database: string,
  privilege: Privilege | undefined,
): Record<string, Privilege> {
  const others = Object.entries(grants).filter(([name]) => name !== database);
  if (privilege !== undefined) others.push([database, privilege]);
  return Object.fromEntries(others);
}
