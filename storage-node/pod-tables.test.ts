// Commands that know their tables by numbers of their own, and tables that go altogether.

import { describe, expect, test } from 'vitest';
import type { Command, Transform } from '../universal-row/command.ts';
import { PodFixture, TextReply } from './pod-fixture.ts';
import { noRules, type TableRules } from './table-rules.ts';
import { TenantQuota } from './tenant-quota.ts';

const span = { first: 100, count: 4 };
const rules = Object.fromEntries([0, 1, 99, 100, 101, 102, 103, 104].map((table) => [table, {}]));

/** Runs a line, or a transform, in the span's table `n`. */
function within(f: PodFixture, n: number, line: string, transform?: Transform): string {
  const reply = new TextReply();
  const command: Command = { ...f.command(line, span.first + n), span };
  void f.pod.execute(transform === undefined ? command : { ...command, transform }, reply);
  return reply.toString();
}

describe('a span', () => {
  test('gives tables other numbers', async () => {
    const f = await PodFixture.open({ rules });
    within(f, 0, 'put k zero');
    within(f, 3, 'put k three');
    expect(f.run('get k', 100)).toBe('zero');
    expect(f.run('get k', 103)).toBe('three');
    within(f, 1, 'swap 0 3');
    expect(f.run('get k', 100)).toBe('three');
    const seen = within(f, 2, 'get k', (rows, _args, reply) => {
      reply.text(`table ${rows.table} of ${rows.tableCount}`);
      rows.useTable(0);
      reply.text(`has ${rows.rowCount()} in ${rows.table}`);
      reply.boolean(rows.hasTable(3));
      reply.boolean(rows.hasTable(5));
    });
    expect(seen).toBe('table 2 of 4 has 1 in 0 true false');
    const live = await f.contents();
    expect(await f.replayed()).toEqual(live);
  });

  test('is a new one with each command', async () => {
    const f = await PodFixture.open({ rules });
    f.run('put k default', 0);
    within(f, 0, 'put k zero');
    expect(f.run('get k', 0)).toBe('default');
    const commands = [
      f.command('get k', 0),
      { ...f.command('get k', 100), span },
      { ...f.command('swap 0 1', 100), span },
      f.command('get k', 0),
    ];
    const reply = new TextReply();
    void f.pod.executeAll(commands, reply, () => true);
    expect(reply.toString()).toBe('default zero OK default');
    expect(f.run('get k', 101)).toBe('zero');
  });
});

describe('tables that are dropped', () => {
  test('are empty, after a crash too, and no others are', async () => {
    const f = await PodFixture.open({ rules });
    for (const table of [0, 99, 100, 101, 103, 104]) f.run(`put k ${table}`, table);
    f.run('field h f v', 101);
    f.tables.set(100, { ...noRules, readOnly: true });
    await f.pod.dropTables(span);
    const check = () => {
      for (const table of [100, 101, 102, 103]) {
        expect(f.pod.tableSize(table).rows, `table ${table}`).toBe(0);
      }
      for (const table of [0, 99, 104]) expect(f.run('get k', table)).toBe(String(table));
      expect(f.pod.heldTables()).toEqual([0, 99, 104]);
    };
    check();
    await f.crash();
    check();
    // There is nothing left to drop, which is no error.
    await f.pod.dropTables(span);
    check();
    f.tables.set(100, noRules);
    expect(within(f, 0, 'put k again')).toBe('OK');
    expect(within(f, 0, 'get k')).toBe('again');
  });

  test('are told to who watches them', async () => {
    const f = await PodFixture.open({ rules });
    within(f, 0, 'put k v');
    const changed: string[] = [];
    const observer = {
      rowChanged: (table: number, key: Buffer) => changed.push(`${table} ${key.toString()}`),
    };
    f.pod.observe(100, Buffer.from('k'), observer);
    f.pod.observe(104, Buffer.from('k'), observer);
    await f.pod.dropTables(span);
    expect(changed).toEqual(['100 k']);
  });
});

test('thousands of tables expire in their turn', async () => {
  const tables = Array.from({ length: 5000 }, (_, i) => i);
  const f = await PodFixture.open({ rules: Object.fromEntries(tables.map((i) => [i, {}])) });
  for (const table of tables) f.run(`put k v ${f.clock.time + 10}`, table);
  await f.safe();
  f.clock.time += 20;
  for (let tick = 0; tick < 2000 && f.pod.heldTables().length > 0; tick++) f.pod.maintain();
  expect(f.pod.heldTables()).toEqual([]);
});

test('rules may be made when they are asked for', async () => {
  const asked = new Set<number>();
  const rulesOf = {
    get(table: number): TableRules | undefined {
      asked.add(table);
      return table < 1_000_000 ? noRules : undefined;
    },
  };
  const f = await PodFixture.open({ tables: rulesOf as Map<number, TableRules> });
  expect(f.run('put k v', 500_000)).toBe('OK');
  expect(f.run('get k', 500_000)).toBe('v');
  expect(f.run('get k', 2_000_000)).toContain('different models');
  expect(asked.size).toBeLessThan(5);
});

describe('a quota', () => {
  test('refuses what grows once it is used up, in every table that shares it', async () => {
    const f = await PodFixture.open({ rules });
    const quota = new TenantQuota('red', { keys: 3, storedBytes: 0 }, () => [f.pod]);
    for (const table of [100, 101]) {
      quota.add(table);
      f.tables.set(table, { ...noRules, quota });
    }
    within(f, 0, 'put a v');
    within(f, 0, 'put b v');
    expect(within(f, 1, 'put c v')).toBe('OK');
    const full = "(error) LIMIT tenant 'red' is at its limit keys: it has 3 and may have 3";
    expect(within(f, 1, 'put d v')).toBe(full);
    expect(within(f, 0, 'field h f v')).toBe(full);
    expect(within(f, 2, 'put d v')).toBe('OK');
    expect(within(f, 1, 'get c')).toBe('v');
    expect(within(f, 0, 'drop a')).toBe('OK');
    expect(within(f, 1, 'put d v')).toBe('OK');
  });

  test('of bytes refuses a large value before it is stored', async () => {
    const f = await PodFixture.open({ rules });
    const quota = new TenantQuota('red', { keys: 0, storedBytes: 1_000_000 }, () => [f.pod]);
    quota.add(100);
    f.tables.set(100, { ...noRules, quota });
    f.pod.endTick();
    const before = f.pod.tableBytes(100);
    expect(within(f, 0, 'put a v')).toBe('OK');
    for (const command of ['patch a 500000000 x', 'patch a 1100000 x']) {
      expect(within(f, 0, command)).toContain("LIMIT tenant 'red' is at its limit storedBytes");
    }
    expect(within(f, 0, 'get a')).toBe('v');
    expect(within(f, 0, 'patch a 100000 x')).toBe('OK');
    expect(f.pod.tableBytes(100)).toBeLessThan(before + 300_000);
  });

  test('of bytes is looked at now and then', async () => {
    let now = 0;
    let bytes = 10;
    const holder = { tableSize: () => ({ rows: 0 }), tableBytes: () => bytes };
    const quota = new TenantQuota(
      'red',
      { keys: 0, storedBytes: 50 },
      () => [holder, holder],
      () => now,
    );
    quota.add(1);
    expect(quota.refusal()).toBeUndefined();
    bytes = 30;
    expect(quota.refusal()).toBeUndefined();
    now += 100;
    expect(quota.refusal()).toBe(
      "LIMIT tenant 'red' is at its limit storedBytes: it has 60 and may have 50",
    );
  });
});
