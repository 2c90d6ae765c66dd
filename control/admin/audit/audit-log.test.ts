import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { realDisk } from '../../../storage-node/disk/real-disk.ts';
import { type AuditEntry, AuditLog } from './audit-log.ts';
import { withoutSecrets } from './without-secrets.ts';

let directory: string;
let log: AuditLog;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-audit-'));
  log = AuditLog.open({ disk: realDisk, directory, fileBytes: 2000 });
});
afterEach(async () => {
  await log.close();
  rmSync(directory, { recursive: true });
});

function entry(change: Partial<AuditEntry>): AuditEntry {
  const call = { method: 'POST', path: '/v1/tenants', status: 201, address: '127.0.0.1' };
  return { at: 1, who: 'admin-token', role: 'operator', ...call, ...change };
}

const look = entry({ method: 'GET', status: 200 });
const stranger = entry({ who: '', role: '', status: 401 });
const tenant = entry({ who: 'x', role: 'tenant', tenant: 'shop', status: 403 });

test('records have one numbering, whoever it was, and after a reopen too', async () => {
  for (const one of [entry({}), look, stranger, tenant, look]) await log.append(one);
  await log.close();
  log = AuditLog.open({ disk: realDisk, directory });
  await log.append(entry({ path: '/v1/tokens' }));
  expect(log.read(0, 10, { looks: true }).map(({ seq, role }) => [seq, role])).toEqual([
    [1, 'operator'],
    [2, 'operator'],
    [3, ''],
    [4, 'tenant'],
    [5, 'operator'],
    [6, 'operator'],
  ]);
  expect(log.read(0, 10).map(({ seq }) => seq)).toEqual([1, 3, 4, 6]);
  expect(log.read(1, 2, { looks: true }).map(({ seq }) => seq)).toEqual([2, 3]);
  expect(log.last(2).map(({ seq }) => seq)).toEqual([4, 6]);
  expect(log.last(2, { tenant: 'shop', looks: true }).map(({ seq }) => seq)).toEqual([4]);
  expect(log.lastSeq).toBe(6);
});

test('nobody pushes out what others did by asking often', async () => {
  await log.append(entry({ path: '/first' }));
  for (let n = 0; n < 300; n++) for (const one of [look, stranger, tenant]) await log.append(one);
  expect(log.read(0, 1)[0]).toMatchObject({ seq: 1, path: '/first' });
  const strangers = log.last(1000).filter(({ role }) => role === '');
  expect(strangers.length).toBeGreaterThan(10);
  expect(strangers.length).toBeLessThan(40);
});

test('a tenant that makes many records pushes out its own, and no other tenant’s', async () => {
  const other = entry({ who: 'y', role: 'tenant', tenant: 'mill', path: '/v1/tenants/mill/users' });
  for (let n = 0; n < 20; n++) await log.append(other);
  const change = { rules: 'x'.repeat(500) };
  for (let n = 0; n < 2500; n++) {
    await log.append({ ...tenant, change });
    if (n % 100 === 0) await new Promise(setImmediate);
  }
  await log.close();
  expect(log.last(1000, { tenant: 'mill' })).toHaveLength(20);
  expect(log.read(0, 1000, { tenant: 'mill' })).toHaveLength(20);
  // The newest of the one that makes many are there, and the space is bounded.
  const own = log.last(1000, { tenant: 'shop' });
  expect(own.at(-1)!.seq).toBe(2520);
  expect(own.length).toBeGreaterThan(5);
  const bytes = readdirSync(directory).map((name) => statSync(join(directory, name)).size);
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(3 * 8 * 2000);
  // All records have one order still.
  const seqs = log.read(0, 1000).map(({ seq }) => seq);
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
});

test('a record has a bounded size', async () => {
  const long = 'x'.repeat(100_000);
  await log.append({ ...tenant, path: `/${long}`, who: long, error: long, change: { long } });
  const [record] = log.last(1);
  expect(JSON.stringify(record).length).toBeLessThan(4000);
  expect(record!.change).toEqual({ cut: expect.stringMatching(/^\{"long":"x+$/) });
});

test('what the schema calls writeOnly is hidden, and what is long is cut', () => {
  const schema = { properties: { password: { writeOnly: true }, name: {}, grants: {} } };
  const body = { name: 'ann', password: 'hush', grants: { x: 'y'.repeat(1000) }, 'a.b': 'hush' };
  const kept = withoutSecrets(body, schema, ['a.b']);
  expect(kept).toMatchObject({ name: 'ann', password: '[hidden]', 'a.b': '[hidden]' });
  expect(String(kept['grants'])).toHaveLength(501);
});
