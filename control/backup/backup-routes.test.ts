import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { AdminFixture } from '../admin/admin-fixture.ts';
import { BackupJobs, type BackupWorker, type Job, type RunningJob } from './backup-jobs.ts';
import { backupRoutes } from './backup-routes.ts';

let f: AdminFixture;
let jobs: BackupJobs;
let ids: number;
/** Ends the job under way, as the test wants it. */
let end: (error?: Error) => void;
let requests: object[];

const work = (_id: string, request: object, job: RunningJob): Promise<object> => {
  requests.push(request);
  job.report({ phase: 'writing', fraction: 0.5, bytes: 100 });
  return new Promise((resolve, reject) => {
    end = (error) => (error === undefined ? resolve({ done: true }) : reject(error));
    job.signal.addEventListener('abort', () => reject(new Error('was cut off')));
  });
};
const worker: BackupWorker = { backup: work, restore: work };

beforeEach(async () => {
  ids = 0;
  requests = [];
  jobs = new BackupJobs(worker, () => `20260101T000000.000Z-0000000${++ids}`);
  f = await AdminFixture.start(realDisk, { moreRoutes: [(app) => backupRoutes(app, jobs)] });
  await f.addTenants();
});
afterEach(async () => {
  await jobs.close();
  await f.close();
});

async function begin(body: object = {}): Promise<Job> {
  const answer = await f.ask('POST', '/v1/backups', { directory: '/b', ...body }, 'operator');
  expect(answer.status).toBe(202);
  return answer.json() as Job;
}

async function look(id: string): Promise<Job> {
  return (await f.ask('GET', `/v1/backups/${id}`, undefined, 'operator')).json() as Job;
}

test('a job is begun, watched, and ends with what came of it', async () => {
  const { id } = await begin({ tenant: 'shop', incremental: true });
  expect(requests).toEqual([{ directory: '/b', tenant: 'shop', incremental: true }]);
  expect(await look(id)).toMatchObject({ state: 'running', phase: 'writing', fraction: 0.5 });
  end();
  await sleep(1);
  expect(await look(id)).toMatchObject({ state: 'done', fraction: 1, result: { done: true } });
  const failing = await begin();
  end(new Error('no room'));
  await sleep(1);
  expect(await look(failing.id)).toMatchObject({ state: 'failed', error: 'no room' });
  const { backups } = (await f.ask('GET', '/v1/backups', undefined, 'viewer')).json() as {
    backups: Job[];
  };
  expect(backups.map((job) => job.id)).toEqual([failing.id, id]);
  expect((await f.ask('GET', '/v1/restores', undefined, 'viewer')).json()).toEqual({
    restores: [],
  });
});

test('one runs at a time, and can be cancelled', async () => {
  const { id } = await begin();
  const second = await f.ask('POST', '/v1/restores', { directory: '/b' }, 'operator');
  expect([second.status, second.text]).toEqual([409, expect.stringContaining(`backup ${id}`)]);
  const cancelled = await f.ask('DELETE', `/v1/backups/${id}`, undefined, 'operator');
  expect(cancelled.json()).toMatchObject({ state: 'cancelled', error: 'cancelled' });
  // An ended job is not changed.
  expect((await f.ask('DELETE', `/v1/backups/${id}`, undefined, 'operator')).json()).toMatchObject({
    state: 'cancelled',
  });
  await begin();
});

describe('is refused', () => {
  test('to whom it is not for', async () => {
    const { id } = await begin();
    const check = async (who: string, method: string, page: string, status: number) => {
      const body = method === 'POST' ? { directory: '/b' } : undefined;
      expect((await f.ask(method, page, body, who)).status, `${who} ${method} ${page}`).toBe(
        status,
      );
    };
    for (const page of ['/v1/backups', '/v1/restores']) {
      await check('viewer', 'POST', page, 403);
      await check('shop', 'POST', page, 403);
      await check('shop', 'GET', page, 403);
    }
    await check('viewer', 'DELETE', `/v1/backups/${id}`, 403);
    await check('shop', 'GET', `/v1/backups/${id}`, 403);
    await check('viewer', 'GET', `/v1/backups/${id}`, 200);
    await check('operator', 'GET', '/v1/backups/other', 404);
  });

  test('what makes no sense', async () => {
    const bodies = [{}, { directory: '' }, { directory: '/b', colour: 1 }, { directory: 5 }];
    for (const body of bodies) {
      expect((await f.ask('POST', '/v1/backups', body, 'operator')).status).toBe(400);
    }
    const odd = { directory: '/b', backup: '../../etc' };
    expect((await f.ask('POST', '/v1/restores', odd, 'operator')).status).toBe(400);
    expect(requests).toEqual([]);
  });
});
