import { expect, test } from 'vitest';
import type { AuditRecord } from './audit-log.ts';
import { type AuditQuery, readWideAudit, type WideAudit } from './wide-audit.ts';

function record(seq: number, at: number): AuditRecord {
  const call = { address: '127.0.0.1:1', method: 'POST', path: '/v1/x', status: 200 };
  return { seq, at, who: 'a', role: 'operator', ...call };
}

/** Two nodes that answer and one that does not; the first is at hand. */
function cluster(): WideAudit & { asked: [number, AuditQuery][] } {
  const trails = new Map([
    [1, [record(1, 10), record(2, 30)]],
    [2, [record(1, 20), record(2, 40)]],
  ]);
  const asked: [number, AuditQuery][] = [];
  return {
    node: 1,
    asked,
    of: (node, query) => {
      asked.push([node, query]);
      const records = trails.get(node);
      if (records === undefined) return Promise.reject(new Error('silent'));
      return Promise.resolve(records.filter(({ seq }) => seq > (query.after ?? 0)));
    },
    all: () =>
      Promise.resolve({
        answers: Array.from(trails, ([node, records]) => ({ node, records })),
        silent: [3],
      }),
  };
}

test('the last records are those of all nodes, by time', async () => {
  const { audit, silentNodes } = await readWideAudit(cluster(), { limit: 3 });
  expect(audit).toEqual([
    { ...record(1, 20), node: 2 },
    { ...record(2, 30), node: 1 },
    { ...record(2, 40), node: 2 },
  ]);
  expect(silentNodes).toEqual([3]);
});

test('those after a number are those of one node', async () => {
  const wide = cluster();
  expect(await readWideAudit(wide, { limit: 9, after: 1 })).toEqual({
    audit: [{ ...record(2, 30), node: 1 }],
  });
  expect(await readWideAudit(wide, { limit: 9, after: 1, tenant: 'shop' }, 2)).toEqual({
    audit: [{ ...record(2, 40), node: 2 }],
  });
  expect(wide.asked.map(([node]) => node)).toEqual([1, 2]);
  expect(wide.asked[1]![1]).toEqual({ limit: 9, after: 1, tenant: 'shop' });
  await expect(readWideAudit(wide, { limit: 9 }, 3)).rejects.toThrow('silent');
});
