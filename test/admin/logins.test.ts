// Reports of the tenant catalog, and the logins that data planes accept by it.

import { expect, test } from 'vitest';
import { Principal, Principals } from '../../access/gateway/principals.ts';
import { hashPassword } from '../../access/gateway/secrets.ts';
import { MemoryStore } from '../../control/metadata/memory-store-fixture.ts';
import { TenantCatalog } from '../../control/tenants/tenant-catalog.ts';
import { WorkflowEngine } from '../../control/workflows/workflow-engine.ts';

test('whoever should be in is let in, and nobody else, as soon as a change is answered', async () => {
  const store = new MemoryStore();
  const workflows = await WorkflowEngine.open(store, { report: () => {} });
  const catalog = await TenantCatalog.open(store, { workflows, databases: 16, hashPassword });
  const principals = new Principals({ databases: 16 });
  principals.update(catalog.snapshot());
  await catalog.attach({
    tenancy: async (update) => principals.update(update),
    dropData: async () => {},
  });
  const { password } = await catalog.createTenant({ name: 'shop' });
  const login = async (name: string, secret: string) =>
    (await principals.login(name, Buffer.from(secret), '127.0.0.1')) instanceof Principal;
  expect(await login('shop', password)).toBe(true);
  expect(await login('default@shop', password)).toBe(true);
  expect(await login('shop', 'guess')).toBe(false);

  const { token, secret } = await catalog.tokens.create('shop', 'default');
  const byToken = principals.token(secret) as Principal;
  expect(byToken).toBeInstanceOf(Principal);
  await catalog.tokens.revoke('shop', token.id);
  expect(principals.token(secret)).not.toBeInstanceOf(Principal);
  expect(byToken.ended).toBe(true);

  await catalog.setUser({ tenant: 'shop', name: 'default', change: {}, password: 'another' });
  expect([await login('shop', password), await login('shop', 'another')]).toEqual([false, true]);
  await catalog.setUser({ tenant: 'shop', name: 'default', change: { enabled: false } });
  expect(await login('shop', 'another')).toBe(false);
  await catalog.setUser({ tenant: 'shop', name: 'default', change: { enabled: true } });
  expect(await login('shop', 'another')).toBe(true);

  await catalog.alterTenant('shop', { state: 'suspended' });
  expect(await login('shop', 'another')).toBe(false);
  await catalog.alterTenant('shop', { state: 'active' });
  expect(await login('shop', 'another')).toBe(true);
  await catalog.dropTenant('shop');
  expect(await login('shop', 'another')).toBe(false);
  await catalog.close();
});
