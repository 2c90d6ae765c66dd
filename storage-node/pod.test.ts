import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { CommandError } from '../universal-row/errors.ts';
import type { PodAdmission, PodRequest } from '../contracts/pod-admission.ts';
import { assertSameContents } from '../engines/conformance/contents.ts';
import { PodFixture, TextReply, verbs } from './pod-fixture.ts';
import { noRules } from './table-rules.ts';

/** A line for a new row of each shape, and lines that make it larger. */
const rowsOfEveryShape: Record<string, { begin: string; grow: string[] }> = {
  value: { begin: 'put k v', grow: ['patch k 9 more'] },
  map: { begin: 'field k f v', grow: ['field k g v', 'field k f longer'] },
  set: { begin: 'member k m', grow: ['member k n'] },
  ranked: { begin: 'score k m 1', grow: ['score k n 2'] },
  array: {
    begin: 'push k tail e',
    grow: ['push k head d', 'element k 0 other', 'insert k 1 between'],
  },
};
const shapes = Object.entries(rowsOfEveryShape);
const long = 'x'.repeat(3000);

describe.each(shapes)('a table property, on a row that is a %s', (_shape, { begin, grow }) => {
  test('readOnly refuses every write and no read', async () => {
    const f = await PodFixture.open({ rules: { 0: {}, 1: {} } });
    f.run(begin);
    const before = await f.contents();
    f.tables.set(0, { ...noRules, readOnly: true });
    for (const line of [begin, ...grow, 'drop k', 'expire k 2000000', 'rename k l', 'clear']) {
      expect(f.run(line)).toBe("(error) READONLY You can't write against a read only table.");
    }
    // Nor from another table.
    expect(f.run('swap 0 1', 1)).toContain('READONLY');
    f.tables.set(0, noRules);
    expect(f.run('rows')).toBe('1');
    assertSameContents(await f.contents(), before, 'after refusals');
    expect(f.run('drop k')).toBe('OK');
  });

  test('maxRowBytes refuses what would make the row larger, and leaves it as it was', async () => {
    const f = await PodFixture.open({ rules: { 0: { maxRowBytes: 2000 } } });
    const tooLarge = (line: string) => {
      const words = line.split(' ');
      // A ranked row grows by its members.
      const at = words[0] === 'score' ? 2 : words.length - 1;
      return words.with(at, long).join(' ');
    };
    expect(f.run(tooLarge(begin))).toMatch(/^\(error\) ERR row too large: .* maxRowBytes is 2000$/);
    expect(f.run('rows')).toBe('0');
    expect(f.run(begin)).toBe('OK');
    const before = await f.contents();
    for (const line of grow) expect(f.run(tooLarge(line))).toContain('ERR row too large');
    assertSameContents(await f.contents(), before, 'after refusals');
    for (const line of grow) expect(f.run(line)).toBe('OK');
    const live = await f.contents();
    assertSameContents(await f.replayed(), live, 'after replay');
  });

  test('maxRowBytes stops a row that grows bit by bit', async () => {
    const f = await PodFixture.open({ rules: { 0: { maxRowBytes: 2000 } } });
    const bits = Array.from({ length: 100 }, (_, i) => {
      const words = begin.split(' ');
      if (words[0] === 'put') return i === 0 ? begin : `patch k ${i * 50} ${'y'.repeat(50)}`;
      const at = words[0] === 'push' ? 3 : 2;
      return words.with(at, `${i}`.padEnd(50, 'y')).join(' ');
    });
    const answers = bits.map((line) => f.run(line));
    const first = answers.findIndex((answer) => answer.includes('row too large'));
    expect(first).toBeGreaterThan(5);
    expect(first).toBeLessThan(45);
    expect(answers.slice(0, first)).toEqual(Array(first).fill('OK'));
    expect(answers.at(-1)).toContain('row too large');
  });

  test('ttlDefault gives a new row its expiry, and later writes none', async () => {
    const f = await PodFixture.open({ rules: { 0: { ttlDefaultMs: 500 } } });
    const expiry = () => f.engine.table(0).expireAt(f.engine.table(0).find(Buffer.from('k'), 0, 1));
    f.run(begin);
    expect(expiry()).toBe(1_000_500);
    f.clock.time += 400;
    f.pod.endTick();
    for (const line of grow) f.run(line);
    expect(expiry()).toBe(1_000_500);
    f.run('expire k 1000900');
    expect(expiry()).toBe(1_000_900);
    const live = await f.contents();
    f.clock.time += 200;
    f.pod.endTick();
    expect(f.run('rows')).toBe('1');
    f.clock.time += 400;
    f.pod.endTick();
    expect(f.run('drop k')).toBe('(error) ERR no such key');
    expect(f.run('rows')).toBe('0');
    expect(live.size).toBe(1);
    expect((await f.replayed()).size).toBe(0);
  });
});

test('a change of table properties holds from the next tick on', async () => {
  const f = await PodFixture.open();
  f.run('put a 1');
  f.pod.endTick();
  f.tables.set(0, { ...noRules, maxRowBytes: 100, ttlDefaultMs: 500 });
  expect(f.run(`put b ${long}`)).toContain('row too large');
  f.run('put c 1');
  f.pod.endTick();
  f.tables.set(0, noRules);
  expect(f.run(`put b ${long}`)).toBe('OK');
  f.pod.endTick();
  f.clock.time += 600;
  expect(['a', 'c'].map((key) => f.run(`get ${key}`))).toEqual(['1', '(nil)']);
});

test('an expiry that the writer gives wins over ttlDefault', async () => {
  const f = await PodFixture.open({ rules: { 0: { ttlDefaultMs: 500 } } });
  f.run('put k v 1002000');
  f.clock.time += 1000;
  expect(f.run('get k')).toBe('v');
});

describe('an expired row', () => {
  const rows = ['put a 1 1000100', 'put b 2 1000200', 'put c 3'];

  test('is dropped, and logged as dropped, when a command meets it', async () => {
    const f = await PodFixture.open();
    for (const line of rows) f.run(line);
    f.pod.endTick();
    f.clock.time += 100;
    expect(f.run('get a')).toBe('(nil)');
    expect(f.run('get b')).toBe('2');
    expect(f.pod.expiredRows).toBe(1);
    expect(f.log.lastIndex).toBe(4);
    const live = await f.contents();
    expect([...live.keys()]).toEqual(['0/b', '0/c']);
    assertSameContents(await f.replayed(), live, 'after replay');
  });

  test('stays while rows are copied to its table: the copy says when it goes', async () => {
    const f = await PodFixture.open();
    for (const line of rows) f.run(line);
    f.tables.set(0, { ...noRules, isFilling: true });
    f.clock.time += 150;
    f.pod.maintain();
    expect(f.pod.tableSize(0)).toEqual({ rows: 3, expiring: 2 });
    f.tables.set(0, noRules);
    f.pod.maintain();
    expect(f.pod.tableSize(0)).toEqual({ rows: 2, expiring: 1 });
  });

  test('is dropped by the tick when nobody meets it', async () => {
    const f = await PodFixture.open();
    for (const line of rows) f.run(line);
    for (let i = 0; i < 1000; i++) f.run(`put bulk${i} x 1000050`);
    f.pod.endTick();
    f.pod.maintain();
    expect(f.pod.tableSize(0)).toEqual({ rows: 1003, expiring: 1002 });
    f.clock.time += 150;
    for (let i = 0; i < 20 && f.pod.tableSize(0).rows > 2; i++) f.pod.maintain();
    expect(f.pod.tableSize(0)).toEqual({ rows: 2, expiring: 1 });
    expect(f.pod.expiredRows).toBe(1001);
    const live = await f.contents();
    assertSameContents(await f.replayed(), live, 'after replay');
  });

  test('does not come back after a crash, whoever dropped it', async () => {
    const f = await PodFixture.open();
    for (const line of rows) f.run(line);
    await f.safe();
    f.clock.time += 300;
    f.run('get a');
    f.pod.maintain();
    await f.safe();
    // The clock goes back, as clocks do: what is gone is gone.
    f.clock.time -= 300;
    await f.crash();
    expect(['a', 'b', 'c'].map((key) => f.run(`get ${key}`))).toEqual(['(nil)', '(nil)', '3']);
  });

  test('gives way to a new row under its key, in one entry', async () => {
    const f = await PodFixture.open();
    f.run('field h old v');
    f.run('expire h 1000100');
    f.pod.endTick();
    f.clock.time += 100;
    const entries = f.log.lastIndex;
    expect(f.run('field h new v')).toBe('OK');
    expect(f.log.lastIndex).toBe(entries + 1);
    const live = await f.contents();
    expect(live.get('0/h')).toEqual({ shape: 2, expireAt: 0, items: ['new', 'v'] });
    assertSameContents(await f.replayed(), live, 'after replay');
  });

  test('is hidden from the first command after the server was idle', async () => {
    const f = await PodFixture.open();
    f.run('put a 1 1000100');
    f.pod.endTick();
    f.pod.maintain();
    f.clock.time += 200;
    expect(f.run('get a')).toBe('(nil)');
  });

  test('expires at one moment for all commands of a tick', async () => {
    const f = await PodFixture.open();
    f.run('put a 1 1000100');
    f.clock.time += 200;
    expect(f.run('get a')).toBe('1');
    f.pod.endTick();
    expect(f.run('get a')).toBe('(nil)');
  });
});

describe('a transaction', () => {
  test('is one entry, and answers each command', async () => {
    const f = await PodFixture.open({ rules: { 0: {}, 1: {} } });
    expect(f.runAll('put a 1', 'field h f v', 'get a', 'drop x', 'put b 2')).toBe(
      'OK OK 1 (error) ERR no such key OK',
    );
    expect(f.log.lastIndex).toBe(1);
    expect(f.runAll('get a', 'get b')).toBe('1 2');
    expect(f.log.lastIndex).toBe(1);
    await f.safe();
    expect(f.log.status().entries).toBe(1);
    const live = await f.contents();
    assertSameContents(await f.replayed(), live, 'after replay');
  });

  test('that is called off does nothing', async () => {
    const f = await PodFixture.open();
    const reply = new TextReply();
    expect(f.pod.executeAll([f.command('put a 1')], reply, () => false)).toBeUndefined();
    expect(reply.toString()).toBe('');
    expect(f.log.lastIndex).toBe(0);
  });

  test('is there whole after a crash, or not at all', async () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 60; seed++) {
      const f = await PodFixture.open({ seed });
      f.run('put a old');
      await f.safe();
      f.runAll(`put a ${'n'.repeat(300)}`, `field h f ${'v'.repeat(300)}`, 'score z m 1');
      f.pod.endTick();
      await f.crash();
      const left = [...(await f.contents()).keys()].join(' ');
      const isNew = f.run('get a') !== 'old';
      seen.add(left);
      expect(isNew ? '0/a 0/h 0/z' : '0/a', `seed ${seed}`).toBe(left);
    }
    expect([...seen].sort()).toEqual(['0/a', '0/a 0/h 0/z']);
  });

  test('once safe is there after any crash', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const f = await PodFixture.open({ seed });
      f.runAll('put a 1', 'push l tail e', 'put b 2');
      await f.safe();
      f.runAll('put a 3', 'drop b');
      await f.crash();
      expect((await f.contents()).size, `seed ${seed}`).toBe(3);
      expect(f.run('get b')).toBe('2');
    }
  });
});

describe('an observer', () => {
  async function watching(...keys: string[]) {
    const f = await PodFixture.open({ rules: { 0: {}, 1: {} } });
    const told: string[] = [];
    const observer = {
      rowChanged: (table: number, key: Buffer) => void told.push(`${table}/${key.toString()}`),
    };
    for (const key of keys) f.pod.observe(0, Buffer.from(key), observer);
    const check = (line: string, ...expected: string[]) => {
      f.run(line);
      expect(told.splice(0), line).toEqual(expected);
    };
    return { f, told, observer, check };
  }

  test('is told of each write to its row, whatever the shape', async () => {
    for (const [, { begin, grow }] of shapes) {
      const { check } = await watching('k');
      for (const line of [begin, ...grow, 'expire k 2000000', 'drop k']) check(line, '0/k');
    }
  });

  test('is told of nothing else', async () => {
    const { f, check } = await watching('k');
    check('put other 1');
    check('get k');
    check('unfield k f');
    check('drop k');
    f.run('put k 1', 1);
    check('rows');
  });

  test('is told of a row that is renamed, swapped, emptied or expires', async () => {
    const { f, told, check } = await watching('a', 'b', 'gone');
    check('put a 1', '0/a');
    check('rename a b', '0/a', '0/b');
    f.run('put gone 1', 1);
    told.length = 0;
    check('swap 0 1', '0/b', '0/gone');
    check('clear', '0/gone');
    check('put a 1 1000100', '0/a');
    f.pod.endTick();
    f.clock.time += 100;
    check('get a', '0/a');
    check('put b 1 1000150', '0/b');
    f.pod.endTick();
    f.clock.time += 100;
    f.pod.maintain();
    expect(told).toEqual(['0/b']);
  });

  test('of a transaction is told when all of it is done', async () => {
    const { f, told, observer } = await watching('a');
    f.pod.observe(0, Buffer.from('b'), {
      rowChanged: () => void told.push(`a is ${f.run('get a')}`),
    });
    f.runAll('put b 1', 'put a 2');
    expect(told).toEqual(['a is 2', '0/a']);
    told.length = 0;
    f.pod.unobserve(0, Buffer.from('a'), observer);
    f.runAll('put a 3');
    expect(told).toEqual([]);
  });
});

describe('a full disk', () => {
  test('refuses writes while reads go on, and takes them again when there is room', async () => {
    const f = await PodFixture.open({ capacityBytes: 4 << 20, ballastBytes: 64 * 1024 });
    f.run('put a 1');
    f.run('put b 2 1000100');
    await f.safe();
    f.disk.capacityBytes = f.disk.usedBytes();
    // Commands begun before the disk was full are kept: the ballast makes room for them.
    for (let i = 0; f.pod.writeFailure === undefined && i < 100; i++) {
      expect(f.run(`put big${i} ${long}`)).toBe('OK');
      await f.safe();
    }
    expect(f.run('put a 2')).toMatch(/^\(error\) MISCONF .*disk full/);
    expect(f.runAll('get a', 'drop a')).toMatch(/^1 \(error\) MISCONF/);
    expect(f.run('get a')).toBe('1');
    f.clock.time += 100;
    const entries = f.log.lastIndex;
    f.pod.endTick();
    f.pod.maintain();
    expect(f.run('get b')).toBe('(nil)');
    expect(f.log.lastIndex).toBe(entries);

    f.disk.capacityBytes = Infinity;
    await expect.poll(() => f.pod.writeFailure).toBeUndefined();
    f.pod.endTick();
    expect(f.run('put a 2')).toBe('OK');
    expect(f.run('get b')).toBe('(nil)');
    await f.safe();
    const live = await f.contents();
    expect(live.has('0/b')).toBe(false);
    expect(live.has('0/big0')).toBe(true);
    await f.crash();
    assertSameContents(await f.contents(), live, 'after a crash');
  });
});

describe('a command that fails midway', () => {
  test('keeps what it wrote in the engine and in the log alike', async () => {
    const f = await PodFixture.open();
    expect(f.run('stumble a 1')).toBe('(error) ERR stumbled');
    expect(f.log.lastIndex).toBe(1);
    expect(f.runAll('put b 1', 'stumble c 1', 'put d 1')).toBe('OK (error) ERR stumbled OK');
    expect(f.log.lastIndex).toBe(2);
    const live = await f.contents();
    expect([...live.keys()].sort()).toEqual(['0/a', '0/b', '0/c', '0/d', '0/stumbled']);
    assertSameContents(await f.replayed(), live, 'after replay');
  });

  test('and by mistake answers an error, reports it, and does the same', async () => {
    const f = await PodFixture.open();
    const command = f.command('put a 1');
    const reply = new TextReply();
    const transform: typeof command.transform = (rows, args, answer) => {
      command.transform(rows, args, answer);
      throw new TypeError('bug');
    };
    void f.pod.execute({ ...command, transform }, reply);
    expect(reply.toString()).toBe('(error) ERR internal error');
    expect(f.reports).toEqual(['error: command put failed']);
    expect(f.run('get a')).toBe('1');
    const live = await f.contents();
    assertSameContents(await f.replayed(), live, 'after replay');
  });

  test('before it wrote leaves no entry', async () => {
    const f = await PodFixture.open();
    f.run('drop nothing');
    expect(f.log.lastIndex).toBe(0);
    const refusing = {
      ...f.command('get a'),
      transform: () => {
        throw new CommandError('ERR no');
      },
    };
    const reply = new TextReply();
    void f.pod.execute(refusing, reply);
    expect(reply.toString()).toBe('(error) ERR no');
    expect(f.log.lastIndex).toBe(0);
  });
});

test('writes that need memory are refused when there is none left, others are not', async () => {
  const f = await PodFixture.open();
  f.run('put a 1');
  f.pod.maxMemoryBytes = 1;
  f.pod.maintain();
  expect(f.run('put b 1')).toBe("(error) OOM command not allowed when used memory > 'maxmemory'.");
  expect(f.run('get a')).toBe('1');
  expect(f.run('drop a')).toBe('OK');
  f.pod.maintain();
  expect(f.run('put b 1')).toBe('OK');
});

const openAdmission: PodAdmission = {
  beginTick: () => {},
  admit: () => 'admitted',
  requeue: () => {},
  leave: () => false,
  charge: () => {},
  spent: () => {},
  isContended: () => false,
  isSliceOver: () => false,
};

test('maintenance is queued once while tenants have the thread, and applies the memory limit when it runs', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  const queue: PodRequest[] = [];
  const admission: PodAdmission = {
    ...openAdmission,
    admit: (request) => {
      queue.push(request);
      return 'queued';
    },
    requeue: (request) => void queue.push(request),
    isContended: () => true,
  };
  const f = await PodFixture.open({ admission });
  try {
    f.run('put a 1');
    f.pod.maxMemoryBytes = f.pod.engineStats().usedBytes;
    f.pod.start();
    vi.advanceTimersByTime(150);
    expect(f.run('put b 1')).toBe('OK');
    expect(queue).toHaveLength(1);
    queue.pop()!.resume(true);
    expect(f.run('put c 1')).toContain('OOM');
    expect(f.runAll('drop a', 'drop b')).toBe('OK OK');
    vi.advanceTimersByTime(150);
    expect(queue).toHaveLength(1);
    f.pod.maxMemoryBytes = 1024 * 1024;
    queue.pop()!.resume(true);
    expect(f.run('put c 1')).toBe('OK');
  } finally {
    vi.useRealTimers();
    await f.pod.close();
  }
});

test('a pod at rest is looked after less often, until something happens or a row has an expiry', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  let rounds = 0;
  const admission = { ...openAdmission, admit: () => (rounds++, 'admitted' as const) };
  const f = await PodFixture.open({ admission });
  const roundsIn = (ms: number): number => {
    rounds = 0;
    vi.advanceTimersByTime(ms);
    return rounds;
  };
  try {
    f.pod.start();
    f.runAll('put a 1', 'put b 1');
    f.pod.endTick();
    expect(roundsIn(100)).toBe(1);
    expect(roundsIn(1000)).toBe(4);
    f.run('get a');
    f.pod.endTick();
    expect(roundsIn(50)).toBe(1);
    f.run('expire a 1000100');
    f.pod.endTick();
    expect(roundsIn(1000)).toBe(20);
    f.clock.time += 200;
    expect(roundsIn(50)).toBe(1);
    expect(f.pod.tableSize(0)).toEqual({ rows: 1, expiring: 0 });
  } finally {
    vi.useRealTimers();
    await f.pod.close();
  }
});

// ---- histories

const keys = fc.constantFrom('a', 'b', 'c', 'd');
const names = fc.constantFrom('f', 'g', 'h', 'longer-name');
const texts = fc.oneof(
  fc.constantFrom('', 'x', '12', 'value'),
  fc.integer({ min: 0, max: 700 }).map((n) => 'z'.repeat(n)),
);
const ends = fc.constantFrom('head', 'tail');
const small = fc.integer({ min: 0, max: 12 });
const scores = fc.constantFrom(0, -1.5, 3, 3, 1e300, Infinity, -Infinity);
const moments = fc.constantFrom(0, 1_000_020, 1_000_040, 1_000_100, 5_000_000);

function lineOf(verb: string, ...words: fc.Arbitrary<string | number>[]): fc.Arbitrary<string> {
  return fc.tuple(...words).map((chosen) => [verb, ...chosen].join(' '));
}

const lines = fc.oneof(
  { weight: 3, arbitrary: lineOf('put', keys, texts, moments) },
  { weight: 2, arbitrary: lineOf('patch', keys, small, texts) },
  { weight: 4, arbitrary: lineOf('field', keys, names, texts) },
  { weight: 3, arbitrary: lineOf('member', keys, names) },
  { weight: 3, arbitrary: lineOf('unfield', keys, names) },
  { weight: 4, arbitrary: lineOf('score', keys, names, scores) },
  { weight: 4, arbitrary: lineOf('push', keys, ends, texts) },
  { weight: 3, arbitrary: lineOf('pop', keys, ends) },
  { weight: 2, arbitrary: lineOf('element', keys, small, texts) },
  { weight: 2, arbitrary: lineOf('insert', keys, small, texts) },
  { weight: 2, arbitrary: lineOf('remove', keys, small, small) },
  { weight: 2, arbitrary: lineOf('drop', keys) },
  { weight: 3, arbitrary: lineOf('expire', keys, moments) },
  { weight: 3, arbitrary: lineOf('rename', keys, keys) },
  { weight: 2, arbitrary: lineOf('get', keys) },
  { weight: 2, arbitrary: lineOf('stumble', keys, texts) },
  { weight: 1, arbitrary: lineOf('take', keys) },
  { weight: 1, arbitrary: fc.constantFrom('swap 0 1', 'clear', 'rows') },
);

type Step =
  | { kind: 'line'; line: string; table: number }
  | { kind: 'all'; lines: string[] }
  | { kind: 'tick' | 'maintain'; ms: number };

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('line' as const),
      line: lines,
      table: fc.constantFrom(0, 0, 1),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('all' as const),
      lines: fc.array(lines, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('tick', 'maintain'), ms: small }),
  },
);

function take(f: PodFixture, step: Step): void {
  if (step.kind === 'line') f.run(step.line, step.table);
  else if (step.kind === 'all') f.runAll(...step.lines);
  else {
    f.pod.endTick();
    f.clock.time += step.ms;
    if (step.kind === 'maintain') f.pod.maintain();
  }
}

describe('whatever is done', () => {
  const rules = { 0: { maxRowBytes: 1500 }, 1: { ttlDefaultMs: 30 } };

  test('a replay of the log gives the same rows', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 20, maxLength: 120 }), async (history) => {
        const f = await PodFixture.open({ rules });
        for (const step of history) take(f, step);
        expect(f.reports).toEqual([]);
        const live = await f.contents();
        assertSameContents(await f.replayed(), live, 'after replay');
      }),
      { numRuns: 150 },
    );
  });

  test('a crash leaves the rows as they were after some entry, no earlier than the last safe one', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(steps, { minLength: 5, maxLength: 40 }),
        fc.array(steps, { minLength: 1, maxLength: 15 }),
        fc.integer({ min: 1, max: 1e6 }),
        async (before, after, seed) => {
          const f = await PodFixture.open({ rules, seed });
          for (const step of before) take(f, step);
          await f.safe();
          const states = new Map([[f.log.lastIndex, await f.contents()]]);
          for (const step of after) {
            take(f, step);
            states.set(f.log.lastIndex, await f.contents());
          }
          f.pod.endTick();
          await f.crash();
          const expected = states.get(f.log.lastIndex);
          expect(expected, `entry ${f.log.lastIndex} was never the last`).toBeDefined();
          assertSameContents(await f.contents(), expected!, 'after the crash');
        },
      ),
      { numRuns: 80 },
    );
  });

  test('every verb of the histories does something in some of them', () => {
    const used = new Set(
      fc.sample(lines, { numRuns: 2000, seed: 1 }).map((line) => line.split(' ')[0]!),
    );
    expect([...used].sort()).toEqual(Object.keys(verbs).sort());
  });
});
