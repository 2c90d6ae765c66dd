import { afterEach, beforeEach, expect, test } from 'vitest';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { AdminFixture } from '../admin/admin-fixture.ts';
import type { WorkflowDetails, WorkflowSummary } from './workflow-routes.ts';
import { workflowRoutes } from './workflow-routes.ts';

let f: AdminFixture;

beforeEach(async () => {
  f = await AdminFixture.start(realDisk, {
    moreRoutes: [(app) => workflowRoutes(app, f.workflows)],
  });
  await f.addTenants();
});
afterEach(() => f.close());

test('a tenant that was dropped leaves a workflow with its steps', async () => {
  const { number } = f.tenants.find('shop');
  expect((await f.ask('DELETE', '/v1/tenants/shop', undefined, 'operator')).status).toBe(200);
  const list = await f.ask('GET', '/v1/workflows', undefined, 'viewer');
  const { workflows } = list.json() as { workflows: WorkflowSummary[] };
  const id = `drop-tenant-${number}`;
  expect(workflows).toMatchObject([{ id, kind: 'drop-tenant', status: 'done', error: null }]);
  const page = await f.ask('GET', `/v1/workflows/${id}`, undefined, 'viewer');
  expect(page.json() as WorkflowDetails).toMatchObject({
    id,
    input: { name: 'shop', number },
    isForwardOnly: true,
    steps: {
      disconnect: { status: 'done' },
      'delete-data': { status: 'done' },
      'delete-documents': { status: 'done' },
    },
  });
  expect((await f.ask('GET', '/v1/workflows/none', undefined, 'viewer')).status).toBe(404);
  expect((await f.ask('GET', '/v1/workflows', undefined, 'mill')).status).toBe(403);
});
