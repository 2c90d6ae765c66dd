// The Grafana dashboard asks for nothing that the server does not tell.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { h: number; w: number; x: number; y: number };
  targets?: { expr: string; legendFormat: string }[];
}

const dashboard = JSON.parse(
  readFileSync(new URL('../../docs/grafana/polyrow.json', import.meta.url), 'utf8'),
) as { panels: Panel[]; templating: { list: { query: string }[] } };

let server: Polyrow;
/** Labels of each metric. */
const told = new Map<string, Set<string>>();

beforeAll(async () => {
  server = await Polyrow.start();
  // Limits are told of where there are any.
  const limits = { ruPerSecond: 1_000_000 };
  expect((await server.askAdmin('PATCH', '/v1/tenants/default/limits', limits)).status).toBe(200);
  const redis = await server.client();
  await redis.command('SET', 'a', 'b');
  redis.close();
  const influx = (path: string, body: string | URLSearchParams): Promise<Response> =>
    fetch(`${server.influx}${path}`, { method: 'POST', body });
  await influx('/query', new URLSearchParams({ q: 'CREATE DATABASE db' }));
  expect((await influx('/write?db=db', 'm,k=a v=1 1')).status).toBe(204);
  expect((await influx('/query?db=db&q=SELECT+v+FROM+m', '')).status).toBe(200);
  const text = await (await fetch(`${server.admin}/metrics`)).text();
  for (const [, name, labels] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? /gm)) {
    let known = told.get(name!);
    if (known === undefined) told.set(name!, (known = new Set()));
    for (const [, label] of (labels ?? '').matchAll(/([a-z_]+)="/g)) known.add(label!);
  }
});
afterAll(async () => {
  await server.stop();
  await server.remove();
});

// Panels of clusters are checked by test/cluster/any-node.test.ts.
const panels = dashboard.panels.filter(
  ({ type, targets }) =>
    type !== 'row' && !targets!.some(({ expr }) => expr.includes('polyrow_cluster_')),
);
const queries = panels.flatMap(({ title, targets }) =>
  targets!.map((target): [string, string, string] => [title, target.expr, target.legendFormat]),
);

test.each(queries)('%s: %s', (_, expr, legend) => {
  const names = expr.match(/polyrow_[a-z_]+/g)!;
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    expect([...told.keys()], name).toContain(name);
    const labels = [
      ...[...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!),
      ...[...expr.matchAll(/(\w+)=~?"/g)].map(([, label]) => label!),
      ...[...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(/, */)),
    ];
    for (const label of labels) expect([...told.get(name)!], `${name}{${label}}`).toContain(label);
  }
});

test('what its variables ask for is told as well', () => {
  const asked = dashboard.templating.list.flatMap(({ query }) => query.match(/polyrow_\w+/g) ?? []);
  expect(asked.length).toBeGreaterThan(0);
  for (const name of asked) expect([...told.keys()]).toContain(name);
});

test('panels have numbers of their own and do not lie over each other', () => {
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  const taken = new Map<string, string>();
  for (const { title, gridPos } of dashboard.panels) {
    expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(taken.get(`${x},${y}`), title).toBeUndefined();
        taken.set(`${x},${y}`, title);
      }
    }
  }
});
