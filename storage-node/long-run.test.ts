import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { Action, type Command } from '../universal-row/command.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { Reply } from '../universal-row/reply.ts';
import type { Rows } from '../universal-row/rows.ts';
import { step, type StepTransform } from '../universal-row/steps.ts';
import { KvEngine } from '../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import type { Engine } from '../engines/engine.ts';
import { PodFixture, TextReply } from './pod-fixture.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-long-run-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const engines: [name: string, create: () => Promise<Engine>][] = [
  ['memory', async () => new MemoryEngine()],
  [
    'kv',
    async () => {
      const engine = new KvEngine({ directory: mkdtempSync(join(root, 'kv-')) });
      await engine.open();
      return engine;
    },
  ],
];

const rules = { 0: {}, 1: {}, 2: {} };

/** Steps that end only when the test says so. */
class Gate {
  readonly steps: string[] = [];
  open = false;
}

function put(rows: Rows, key: string, value: string): void {
  const k = Buffer.from(key);
  const v = Buffer.from(value);
  rows.putValue(k, 0, k.length, v, 0, v.length, 0);
}

/** Writes `long:0`, `long:1` and so on, a row a step, until the gate opens; answers how many. */
function longWrite(gate: Gate): StepTransform {
  return function* (rows, _args, reply) {
    let n = 0;
    do {
      yield* step(() => put(rows, `long:${n}`, String(n)));
      gate.steps.push(`wrote ${n++}`);
    } while (!gate.open || n < 3);
    reply.integer(n);
  };
}

function longRead(gate: Gate): StepTransform {
  return function* (rows, _args, reply) {
    const before = rows.rowCount();
    do {
      gate.steps.push('read');
      yield;
    } while (!gate.open);
    reply.simple(`${before} ${rows.rowCount()}`);
  };
}

function command(f: PodFixture, form: StepTransform, action: Action, table = 0): Command {
  return { ...f.command('get a', table), action, transform: () => form };
}

async function textOf(done: MaybePromise<Reply | void>, reply: TextReply): Promise<string> {
  const answer = (await done) ?? reply;
  if (!(answer instanceof TextReply)) throw new TypeError('not an answer of this test');
  return answer.toString();
}

async function ticks(n: number): Promise<void> {
  for (let i = 0; i < n; i++) await new Promise(setImmediate);
}

describe.each(engines)('%s', (_name, create) => {
  test('a long command that writes has its table alone, and is one entry', async () => {
    const f = await PodFixture.open({ rules, engine: await create() });
    const gate = new Gate();
    const reply = new TextReply();
    const before = f.log.lastIndex;
    const done = f.pod.execute(command(f, longWrite(gate), Action.update), reply);
    await ticks(20);
    expect(gate.steps.length).toBeGreaterThan(1);
    // Others go on in other tables, and wait in order for this one.
    expect(f.run('put b 1', 1)).toBe('OK');
    expect(f.run('get b', 1)).toBe('1');
    const order: string[] = [];
    const waiting = ['put long:0 mine', 'get long:0', 'rows'].map(async (line) => {
      const own = new TextReply();
      const text = await textOf(f.pod.execute(f.command(line), own), own);
      order.push(`${line}: ${text}`);
    });
    await ticks(3);
    expect(order).toEqual([]);
    expect(f.log.lastIndex).toBe(before + 1);
    expect(f.pod.waitingCommands).toBe(3);
    gate.open = true;
    const count = Number(await textOf(done, reply));
    await Promise.all(waiting);
    expect(order).toEqual(['put long:0 mine: OK', 'get long:0: mine', `rows: ${count}`]);
    expect(f.log.lastIndex).toBe(before + 3);
    await f.safe();
    const rows = await f.contents();
    expect(await f.replayed()).toEqual(rows);
  });

  test('long commands that read share their table; what writes waits for them', async () => {
    const f = await PodFixture.open({ rules, engine: await create() });
    f.run('put a 1');
    f.run(`put old 1 ${f.clock.time + 10}`);
    const gate = new Gate();
    const reads = [1, 2].map(() => {
      const reply = new TextReply();
      return textOf(f.pod.execute(command(f, longRead(gate), Action.scan), reply), reply);
    });
    await ticks(5);
    expect(f.run('get a')).toBe('1');
    // An expired row is hidden, and stays until the table is no longer read.
    f.pod.endTick();
    f.clock.time += 20;
    f.pod.maintain();
    expect(f.run('get old')).toBe('(nil)');
    const own = new TextReply();
    const write = textOf(f.pod.execute(f.command('put b 2'), own), own);
    // A later command does not overtake it.
    const after = new TextReply();
    const read = textOf(f.pod.execute(f.command('get b'), after), after);
    await ticks(3);
    gate.open = true;
    expect(await Promise.all(reads)).toEqual(['2 2', '2 2']);
    expect([await write, await read]).toEqual(['OK', '2']);
    f.pod.endTick();
    expect(await f.later('get old')).toBe('(nil)');
    expect(f.run('rows')).toBe('2');
    await f.pod.close();
  });

  test('a transaction with a long command in it is one entry and one answer', async () => {
    const f = await PodFixture.open({ rules, engine: await create() });
    const gate = new Gate();
    const reply = new TextReply();
    reply.simple('before');
    const commands = [
      f.command('put a 1'),
      command(f, longWrite(gate), Action.update),
      f.command('get long:1'),
      f.command('get a'),
    ];
    const before = f.log.lastIndex;
    const done = f.pod.executeAll(commands, reply, (to) => {
      to.array(4);
      return true;
    });
    await ticks(5);
    const own = new TextReply();
    const other = textOf(f.pod.execute(f.command('get a'), own), own);
    gate.open = true;
    const text = await textOf(done, reply);
    expect(text).toMatch(/^\*4 OK \d+ 1 1$/);
    expect(reply.toString()).toBe('before');
    expect(await other).toBe('1');
    expect(f.log.lastIndex).toBe(before + 1);
    const rows = await f.contents();
    expect(await f.replayed()).toEqual(rows);
  });

  test('a transaction of many short commands stops for others, and is one entry', async () => {
    const f = await PodFixture.open({ rules, engine: await create() });
    f.clock.lookMs = 0.6;
    const commands = Array.from({ length: 1000 }, (_, n) => f.command(`put k${n} ${n}`));
    commands.push(f.command('get k0'), f.command('get k999'));
    const reply = new TextReply();
    const before = f.log.lastIndex;
    const done = f.pod.executeAll(commands, reply, (to) => {
      to.array(commands.length);
      return true;
    });
    expect(f.pod.longRuns).toBe(1);
    const own = new TextReply();
    const other = textOf(f.pod.execute(f.command('get k999'), own), own);
    expect(await textOf(done, reply)).toBe(`*1002 ${'OK '.repeat(1000)}0 999`);
    expect(await other).toBe('999');
    // A step a command, but for those that were run before the first look that found it late.
    expect(f.pod.stats.longSteps).toBeGreaterThan(980);
    expect(f.log.lastIndex).toBe(before + 1);
    const rows = await f.contents();
    expect(await f.replayed()).toEqual(rows);
  });

  test('closing does not wait for a long command that writes, nor keeps a part of it', async () => {
    const f = await PodFixture.open({ rules, engine: await create() });
    expect(f.run('put a 1')).toBe('OK');
    const gate = new Gate();
    void f.pod.execute(command(f, longWrite(gate), Action.update), new TextReply());
    await ticks(20);
    const waiting = new TextReply();
    void f.pod.execute(f.command('put b 1'), waiting);
    const checkpoint = f.pod.checkpoint();
    await f.pod.close();
    await checkpoint;
    expect(gate.steps.length).toBeGreaterThan(1);
    expect(f.pod.stats.checkpoints).toBe(0);
    expect(waiting.toString()).toBe('');
    expect((await f.replayed()).size).toBe(1);
  });

  test('a watched key of a table that is being written counts as changed', async () => {
    const f = await PodFixture.open({ rules, engine: await create() });
    const gate = new Gate();
    const reply = new TextReply();
    const done = f.pod.execute(command(f, longWrite(gate), Action.update), reply);
    await ticks(5);
    let changes = 0;
    f.pod.observe(0, Buffer.from('long:0'), { rowChanged: () => void changes++ });
    gate.open = true;
    await done;
    expect(changes).toBeGreaterThan(0);
    await f.pod.close();
  });

  test('a checkpoint waits until nothing is written by halves', async () => {
    const f = await PodFixture.open({ rules, engine: await create() });
    const gate = new Gate();
    const done = f.pod.execute(command(f, longWrite(gate), Action.update), new TextReply());
    await ticks(5);
    let isMade = false;
    const checkpoint = f.pod.checkpoint().then(() => {
      isMade = true;
    });
    await ticks(10);
    expect(isMade).toBe(false);
    gate.open = true;
    await done;
    await f.safe();
    await checkpoint;
    await f.pod.close();
  });

  test('one that only reads ends when nobody waits for it', async () => {
    const f = await PodFixture.open({ rules, engine: await create() });
    const gate = new Gate();
    const read = command(f, longRead(gate), Action.scan);
    const done = f.pod.execute(read, new TextReply());
    await ticks(5);
    read.isAbandoned = true;
    await done;
    expect(f.pod.longRuns).toBe(0);
    expect(f.run('put a 1')).toBe('OK');
    await f.pod.close();
  });

  test('a failure after some writes keeps them, in the engine and in the log', async () => {
    const f = await PodFixture.open({ rules: { 0: { maxRowBytes: 10 } }, engine: await create() });
    const failing: StepTransform = function* (rows) {
      yield* step(() => put(rows, 'a', '1'));
      yield* step(() => put(rows, 'b', 'x'.repeat(11)));
    };
    const reply = new TextReply();
    const done = f.pod.execute(command(f, failing, Action.update), reply);
    expect(await textOf(done, reply)).toContain('(error) ERR row too large');
    expect(f.run('get a')).toBe('1');
    await f.safe();
    const rows = await f.contents();
    expect(await f.replayed()).toEqual(rows);
  });
});

test('a crash in the middle of a long command leaves nothing of it', async () => {
  const f = await PodFixture.open({ rules });
  f.run('put a 1');
  await f.safe();
  const gate = new Gate();
  void f.pod.execute(command(f, longWrite(gate), Action.update), new TextReply());
  await ticks(5);
  f.run('put b 1', 1);
  await f.safe();
  await f.crash();
  expect(f.run('rows')).toBe('1');
  expect(f.run('get b', 1)).toBe('1');
  gate.open = true;
});

test('faults in steps that write: each step is undone and done again, others stay', async () => {
  const directory = mkdtempSync(join(root, 'cold-'));
  const first = new KvEngine({ directory });
  await first.open();
  const f = await PodFixture.open({ rules, engine: first });
  for (let i = 0; i < 50; i++) f.run(`member set m${i}`);
  await f.safe();
  const expected = (await f.contents()).size;
  await f.pod.close();
  // Nothing is in memory: each step meets what it needs on the disk.
  const cold = new KvEngine({ directory });
  await cold.open();
  const g = await PodFixture.open({ rules, engine: cold });
  const key = Buffer.from('set');
  const removing: StepTransform = function* (rows, _args, reply) {
    let removed = 0;
    for (let i = 0; i < 50; i += 10) {
      removed += yield* step(() => {
        const row = rows.find(key, 0, key.length);
        put(rows, `note:${i}`, 'x');
        let n = 0;
        for (let j = i; j < i + 10 && j < 49; j++) {
          const member = Buffer.from(`m${j}`);
          if (rows.removeField(row, member, 0, member.length)) n++;
        }
        return n;
      });
    }
    reply.integer(removed);
  };
  const reply = new TextReply();
  const done = g.pod.execute(command(g, removing, Action.delete), reply);
  let others = 0;
  while (g.pod.longRuns > 0) {
    g.run(`put other:${others++} 1`, 1);
    g.pod.endTick();
    await ticks(1);
  }
  expect(await textOf(done, reply)).toBe('49');
  expect(g.pod.stats.readFaults).toBeGreaterThan(0);
  expect(g.run('rows')).toBe('6');
  expect(g.run('rows', 1)).toBe(String(others));
  expect(expected).toBeGreaterThan(0);
  await g.pod.close();
  // The state on disk is the committed one.
  const again = new KvEngine({ directory });
  await again.open();
  const h = await PodFixture.open({ rules, engine: again });
  expect(await h.later('rows')).toBe('6');
  await h.pod.close();
});
