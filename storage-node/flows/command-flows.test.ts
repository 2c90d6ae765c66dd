import { describe, expect, test } from 'vitest';
import { Action, type Command } from '../../universal-row/command.ts';
import { CommandError, ReadFault } from '../../universal-row/errors.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { commandOf, PodFixture, TestClock, TextReply } from '../pod-fixture.ts';
import { Pod } from '../pod.ts';
import type { LogListener } from '../replicator/partition-log.ts';
import { UnreliableCluster, UnreliableLog } from '../replicator/testing/unreliable-log.ts';
import { noRules } from '../table-rules.ts';
import type { CommandContext, CommandFlowRegistry } from './command-flows.ts';
import type { FlowControl, Task } from './flow.ts';
import { FlowRegistry, type FlowLimits, type Placement } from './flow-registry.ts';

const writes = [Action.update, Action.put, Action.delete];

function registry(limits?: Partial<FlowLimits>): CommandFlowRegistry {
  return new FlowRegistry<CommandContext>(limits);
}

function task(
  name: string,
  run: (context: CommandContext, control: FlowControl) => void | Promise<void>,
): Task<CommandContext> {
  return { name, mayWait: true, run };
}

/** A line of the audit log: table, word 1, what was touched, and what became of it. */
function auditLine({ command, outcome }: CommandContext): string {
  const { kind, error, index, touched } = outcome!;
  const keys = touched.map(({ table, key }) => `${table}/${key.toString('latin1')}`);
  const word = command.args.count > 1 ? command.args.text(1) : '';
  const end = error ?? (index === 0 ? 'nothing written' : `entry ${index}`);
  return `${command.name} ${command.table}/${word} [${keys.join(' ')}] ${kind}: ${end}`;
}

async function audited(options: { rules?: Record<number, object> } = {}) {
  const lines: string[] = [];
  const audit: Task<CommandContext> = {
    name: 'audit',
    run: (context) => void lines.push(auditLine(context)),
  };
  const flows = registry().register(audit, { after: 'reply', actions: writes });
  const f = await PodFixture.open({ ...options, flows });
  return { f, taken: () => lines.splice(0) };
}

describe('an audit task, registered once', () => {
  test('sees every write command with table, key and outcome', async () => {
    const { f, taken } = await audited({ rules: { 0: {}, 3: {}, 5: { readOnly: true } } });
    f.run('put a 1');
    f.run('field h f v', 3);
    f.run('get a');
    f.run('rename a b');
    f.run('drop nothing');
    f.run('put a 1', 5);
    f.run('stumble a 1');
    f.run('take nobody');
    f.run('clear');
    expect(taken()).toEqual([
      'put 0/a [0/a] done: entry 1',
      'field 3/h [3/h] done: entry 2',
      'rename 0/a [0/a 0/b] done: entry 3',
      'drop 0/nothing [] failed: ERR no such key',
      "put 5/a [] refused: READONLY You can't write against a read only table.",
      'stumble 0/a [0/a 0/stumbled] failed: ERR stumbled',
      'take 0/nobody [] waits: nothing written',
      'clear 0/ [] done: entry 5',
    ]);
    expect(f.run('rows')).toBe('0');
    expect(f.log.lastIndex).toBe(5);
  });

  test('sees each command of a transaction, all in one entry', async () => {
    const { f, taken } = await audited();
    expect(f.runAll('put a 1', 'field h f v', 'get a', 'field h f w', 'drop x')).toBe(
      'OK OK 1 OK (error) ERR no such key',
    );
    expect(taken()).toEqual([
      'put 0/a [0/a] done: entry 1',
      'field 0/h [0/h] done: entry 1',
      'field 0/h [0/h] done: entry 1',
      'drop 0/x [] failed: ERR no such key',
    ]);
    expect(f.pod.executeAll([f.command('put a 2')], new TextReply(), () => false)).toBeUndefined();
    expect(taken()).toEqual([]);
    expect(f.run('get a')).toBe('1');
  });

  test('changes nothing in the log', async () => {
    const { f } = await audited();
    const bare = await PodFixture.open();
    for (const one of [f, bare]) {
      one.run('put a 1');
      one.run('field h f v');
      one.run('field h g v');
      await one.safe();
    }
    expect(f.log.status().appendedLsn).toBe(bare.log.status().appendedLsn);
    const live = await f.contents();
    expect(await f.replayed()).toEqual(live);
  });

  test('that fails is reported, and the answer stands', async () => {
    const flows = registry().register(
      task('audit', ({ command }) => {
        const failure = new Error(`cannot note ${command.name}`);
        if (command.name === 'drop') return Promise.reject(failure);
        throw failure;
      }),
      { after: 'reply', actions: writes },
    );
    const f = await PodFixture.open({ flows });
    expect(f.run('put a 1')).toBe('OK');
    expect(f.run('drop a')).toBe('OK');
    await new Promise(setImmediate);
    expect(f.reports).toEqual([
      'error: a task after command put failed',
      'error: a task after command drop failed',
    ]);
    expect(f.pod.stats.internalErrors).toBe(2);
  });
});

/** A pod with one task at a place, which waits until it is released. */
async function withGate(place: Placement, limits?: Partial<FlowLimits>) {
  const runs: string[] = [];
  const going: { go: () => void; fail: (error: Error) => void }[] = [];
  const flows = registry(limits).register(
    task('gate', ({ command, outcome }) => {
      runs.push(`${command.name} ${outcome?.kind ?? 'not yet'}`);
      return new Promise((go, fail) => going.push({ go, fail }));
    }),
    { actions: writes, ...place },
  );
  const f = await PodFixture.open({ flows });
  return { f, runs, going };
}

describe('a task that waits', () => {
  test('before a command holds that command back, and no other', async () => {
    const { f, runs, going } = await withGate({ before: 'admit' });
    expect(f.pod.tasksMayWait).toBe(true);
    const answer = f.later('put a 1');
    expect(runs).toEqual(['put not yet']);
    expect(f.run('get a')).toBe('(nil)');
    going[0]!.go();
    expect(await answer).toBe('OK');
    expect(f.run('get a')).toBe('1');
  });

  test('between the log and the answer holds the answer back', async () => {
    const { f, runs, going } = await withGate({ after: 'log', before: 'reply' });
    let answered = false;
    const answer = f.later('put a 1').finally(() => (answered = true));
    expect(f.run('get a')).toBe('1');
    await new Promise(setImmediate);
    expect(answered).toBe(false);
    expect(runs).toEqual(['put done']);
    going[0]!.go();
    expect(await answer).toBe('OK');
  });

  test('after the answer holds nothing back', async () => {
    const { f, runs } = await withGate({ after: 'reply' });
    expect(f.pod.tasksMayWait).toBe(false);
    expect(f.run('put a 1')).toBe('OK');
    expect(runs).toEqual(['put done']);
  });

  test('and fails refuses the command, or becomes the answer', async () => {
    const admission = await withGate({ before: 'admit' });
    const refused = admission.f.later('put a 1');
    admission.going[0]!.fail(new CommandError('TRYAGAIN no tokens'));
    expect(await refused).toBe('(error) TRYAGAIN no tokens');
    expect(admission.f.log.lastIndex).toBe(0);

    const quorum = await withGate({ after: 'log', before: 'reply' });
    const failed = quorum.f.later('put a 1');
    quorum.going[0]!.fail(new Error('bug'));
    expect(await failed).toBe('(error) ERR internal error');
    // The write is in the log all the same.
    expect(quorum.f.run('get a')).toBe('1');
    expect(quorum.f.reports).toEqual(['error: a task of command put failed']);
  });

  test('holds a transaction back as a whole; a failure after it answers every command', async () => {
    const { f, runs, going } = await withGate({ after: 'log', before: 'reply' });
    const reply = new TextReply();
    const commands = ['put a 1', 'get a', 'drop a'].map((line) => f.command(line));
    const end = f.pod.executeAll(commands, reply, () => {
      reply.array(3);
      return true;
    });
    expect(runs).toEqual(['put done']);
    going[0]!.go();
    await new Promise(setImmediate);
    expect(runs).toEqual(['put done', 'drop done']);
    going[1]!.fail(new CommandError('ERR no quorum'));
    await end;
    const error = '(error) ERR no quorum';
    expect(reply.toString()).toBe(`*3 ${error} ${error} ${error}`);
  });
});

/** A log whose calls to the pod a test makes itself. */
class HeardLog extends UnreliableLog {
  listener: LogListener | undefined;

  override listen(listener: LogListener): void {
    this.listener = listener;
    super.listen(listener);
  }
}

describe('what became of the pod while a task ran', () => {
  /** A replica that leads, with a task before its writes. */
  async function leader() {
    const going: (() => void)[] = [];
    const flows = registry().register(
      task('gate', () => new Promise((go) => going.push(go))),
      { actions: writes, before: 'admit' },
    );
    const engine = new MemoryEngine();
    await engine.open();
    const log = new HeardLog(new UnreliableCluster(), 1, 0);
    const tables = new Map([0, 1].map((table) => [table, noRules]));
    const pod = new Pod({
      ...{ engine, log, tables, flows, group: 5, clock: new TestClock() },
      ...{ rng: { next: () => 0.5 }, maxMemoryBytes: Infinity, checkpointBytes: Infinity },
      report: () => {},
    });
    await log.lead();
    const send = (line: string): { command: Command; answer: Promise<string> } => {
      const reply = new TextReply();
      const command = commandOf(line, 1);
      const done = Promise.resolve(pod.execute(command, reply));
      return { command, answer: done.then(() => reply.toString()) };
    };
    return { pod, log, going, send };
  }

  test('a replica that leads no more refuses the command, which was not run', async () => {
    const { pod, log, going, send } = await leader();
    const { command, answer } = send('put a 1');
    log.depose(0);
    await log.stepDown(() => false);
    going[0]!();
    expect(await answer).toBe('(error) ERR this partition has no leader now');
    expect(command.notRun).toMatchObject({ why: 'notLeader' });
    expect(pod.tableSize(1).rows).toBe(0);
    await pod.close();
  });

  test('one that is paused runs it once it goes on', async () => {
    const { pod, log, going, send } = await leader();
    const { answer } = send('put a 1');
    await log.listener!.pause!();
    going[0]!();
    await new Promise(setImmediate);
    expect(pod.tableSize(1).rows).toBe(0);
    log.listener!.resume!();
    expect(await answer).toBe('OK');
    await pod.close();
  });

  test('a pod that is closed refuses it', async () => {
    const { f, going } = await withGate({ before: 'admit' });
    const command = f.command('put a 1');
    const reply = new TextReply();
    const done = f.pod.execute(command, reply);
    await f.pod.close();
    going[0]!.go();
    await done;
    expect(reply.toString()).toBe('(error) ERR this partition is closed here');
    expect(command.notRun).toEqual({ why: 'notLeader', leader: 0 });
    expect(f.reports).toEqual([]);
  });

  test('a table that a long command has taken is waited for', async () => {
    const { f, going } = await withGate({ before: 'admit' });
    const write = f.later('put a 1');
    let isOver = false;
    const long: Command = {
      ...f.command('get a'),
      action: Action.scan,
      transform: () =>
        function* (rows, _args, reply) {
          while (!isOver) yield;
          reply.integer(rows.rowCount());
        },
    };
    const reply = new TextReply();
    const reading = f.pod.execute(long, reply) as Promise<TextReply>;
    going[0]!.go();
    await new Promise(setImmediate);
    expect(f.pod.tableSize(0).rows).toBe(0);
    isOver = true;
    expect((await reading).toString()).toBe('0');
    expect(await write).toBe('OK');
  });
});

describe('a deadline', () => {
  const timeUp = '(error) ERR the command took longer than it may';

  test('before the command keeps it from running, and gives tokens back', async () => {
    let unused = 0;
    const outcomes: string[] = [];
    const flows = registry({ deadlineMs: 150 })
      .register(
        task('reserve', (_context, control) => {
          control.reserve(10, (tokens) => (unused += tokens));
        }),
        { before: 'admit', actions: writes },
      )
      .register(
        task('forever', () => new Promise(() => {})),
        { after: 'reserve', before: 'admit', actions: [Action.put] },
      )
      .register(
        task('audit', (context) => void outcomes.push(auditLine(context))),
        { after: 'reply', actions: writes },
      );
    const f = await PodFixture.open({ flows });
    expect(await f.later('put a 1')).toBe(timeUp);
    expect(unused).toBe(10);
    expect(f.run('get a')).toBe('(nil)');
    expect(f.run('field h f v')).toBe('OK');
    expect(outcomes).toEqual([
      'put 0/a [] refused: ERR the command took longer than it may',
      'field 0/h [0/h] done: entry 1',
    ]);
    expect(unused).toBe(20);
  });

  test('after the command says so: it is written, but its gate was not passed', async () => {
    const { f } = await withGate({ after: 'log', before: 'reply' }, { deadlineMs: 150 });
    expect(await f.later('put a 1')).toBe(timeUp);
    expect(f.run('get a')).toBe('1');
  });
});

test('a task before a command runs once, however often rows have to be read first', async () => {
  let before = 0;
  const outcomes: string[] = [];
  const flows = registry()
    .register(
      task('count', () => void before++),
      { before: 'admit' },
    )
    .register(
      task('audit', (context) => void outcomes.push(auditLine(context))),
      { after: 'reply' },
    );
  const f = await PodFixture.open({ flows });
  let faults = 2;
  const command = f.command('put a 1');
  const faulting: Command = {
    ...command,
    transform(rows, args, reply) {
      if (faults-- > 0) throw new ReadFault(new Promise((ready) => setImmediate(ready)));
      command.transform(rows, args, reply);
    },
  };
  const reply = new TextReply();
  const end = f.pod.execute(faulting, reply);
  expect(f.run('put b 2')).toBe('OK');
  await end;
  expect(reply.toString()).toBe('OK');
  expect(before).toBe(2);
  expect(f.pod.stats.readFaults).toBe(2);
  expect(outcomes).toEqual(['put 0/b [0/b] done: entry 1', 'put 0/a [0/a] done: entry 2']);
});

test('a transaction that has to read first answers once', async () => {
  const flows = registry().register(
    task('note', () => {}),
    { before: 'admit' },
  );
  for (const options of [{}, { flows }]) {
    const f = await PodFixture.open(options);
    let faults = 1;
    const get = f.command('get a');
    const faulting: Command = {
      ...get,
      transform(rows, args, reply) {
        if (faults-- > 0) throw new ReadFault(Promise.resolve());
        get.transform(rows, args, reply);
      },
    };
    const reply = new TextReply();
    await f.pod.executeAll([f.command('get b'), faulting], reply, () => {
      reply.array(2);
      return true;
    });
    expect(reply.toString()).toBe('*2 (nil) (nil)');
  }
});

test('commands without extra tasks take no other path', async () => {
  const flows = registry().register(
    task('audit', () => {}),
    { after: 'reply', actions: [Action.delete] },
  );
  const f = await PodFixture.open({ flows });
  f.run('put a 1');
  f.run('get a');
  f.run('drop a');
  const costs = f.pod.taskCosts().map(({ action, model, task: name, runs }) => ({
    action,
    model,
    name,
    runs,
  }));
  expect(costs).toEqual([
    { action: Action.delete, model: 'memory', name: 'command', runs: 1 },
    { action: Action.delete, model: 'memory', name: 'audit', runs: 1 },
  ]);
  expect((await PodFixture.open({ flows: registry() })).pod.taskCosts()).toEqual([]);
});
