import { beforeEach, expect, test } from 'vitest';
import type { LocalPod } from '../../../contracts/local-pod.ts';
import { Arguments } from '../../../universal-row/arguments.ts';
import { Action, type Command, type NotRun } from '../../../universal-row/command.ts';
import type { Outcome, RowObserver, TransactionWatch } from '../../../universal-row/executor.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import { RespWriter } from '../../redis/resp-writer.ts';
import { GroupExecutor } from './group-executor.ts';
import { GroupTicks } from './group-ticks.ts';
import type { RemoteExecutor } from './remote-executor.ts';
import { until } from '../../../test/support/until.ts';

const perNode = 2 ** 20;

/** A replica, in this process or in another one. */
class Replica implements LocalPod {
  readonly node: number;
  role: LocalPod['role'] = 'follower';
  leader = 0;
  losses = 0;
  lastPosition = 0;
  isPaused = false;
  isWithin = (): boolean => false;
  read = (): never => {
    throw new Error('no read is for a follower here');
  };
  /** Hint at the leader, returned while another replica leads. */
  hint = 0;
  readonly ran: string[] = [];
  readonly observers = new Set<RowObserver>();
  /** Commands wait for this before they run. */
  gate: Promise<void> | undefined;
  get isShut(): boolean {
    return this.role !== 'leader' || this.gate !== undefined;
  }
  position = -1;
  outcomes: ((outcome: Outcome) => void)[] = [];
  suspected = 0;
  /** Of the link to it. A pod of this process has no property of the name `link`. */
  readonly wire = {
    isUp: true,
    connects: 1,
    flush: () => {},
    suspect: () => void this.suspected++,
  };

  constructor(node: number) {
    this.node = node;
  }

  get asRemote(): RemoteExecutor {
    const { wire: link } = this;
    const refuse = this.#refuse.bind(this);
    return {
      link,
      execute: (command: Command, reply: Reply) =>
        link.isUp ? this.execute(command, reply) : refuse(command, reply, 'unreachable'),
      executeAll: this.executeAll.bind(this),
      // As over a link: whether the row has changed before is unknown.
      observe: (table: number, key: Buffer, observer: RowObserver) => {
        this.observe(table, key, observer);
        observer.rowChanged(table, key);
      },
      unobserve: this.unobserve.bind(this),
    } as unknown as RemoteExecutor;
  }

  #refuse(first: Command, reply: Reply, why: NotRun['why'] = 'notLeader'): void {
    reply.error(`ERR refused by ${this.node}`);
    first.notRun = { why, leader: this.hint };
  }

  execute(command: Command, reply: Reply): MaybePromise<Reply | void> {
    return this.executeAll([command], reply, () => true);
  }

  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
    watch?: TransactionWatch,
  ): MaybePromise<Reply | void> {
    const run = (own: Reply): void => {
      if (this.role !== 'leader') this.#refuse(commands[0]!, own);
      else if (before(own)) {
        for (const { args } of commands) {
          this.ran.push(args.latin1(0));
          own.integer(this.node);
        }
      }
    };
    this.watches.push(watch);
    if (this.gate === undefined) {
      run(reply);
      return;
    }
    const own = reply.fork(reply.mark());
    return this.gate.then(() => {
      run(own);
      return own;
    });
  }
  readonly watches: (TransactionWatch | undefined)[] = [];

  refusal(): string | undefined {
    return 'of the pod';
  }
  observe(_table: number, _key: Buffer, observer: RowObserver): void {
    this.observers.add(observer);
  }
  unobserve(_table: number, _key: Buffer, observer: RowObserver): void {
    this.observers.delete(observer);
  }
  follow(): void {}
  endTick(): number {
    return this.flushTick();
  }
  flushTick(): number {
    return this.position;
  }
  whenSettled(_position: number, then: (outcome: Outcome) => void): void {
    this.outcomes.push(then);
  }
}

let replicas: Map<number, Replica>;
let remotes: Map<number, RemoteExecutor>;
let local: Replica | undefined;
let ticks: GroupTicks;
let group: GroupExecutor;

function lead(node: number): void {
  for (const replica of replicas.values()) {
    replica.role = replica.node === node ? 'leader' : 'follower';
  }
}

beforeEach(() => {
  replicas = new Map([1, 2, 3].map((node) => [node, new Replica(node)]));
  remotes = new Map([...replicas].map(([node, replica]) => [node, replica.asRemote]));
  local = replicas.get(1);
  ticks = new GroupTicks();
  group = new GroupExecutor(groupOptions());
  group.setReplicas([1, 2, 3]);
});

function groupOptions(): ConstructorParameters<typeof GroupExecutor>[0] {
  return {
    group: () => 16,
    node: 1,
    ticks,
    incarnation: 1,
    local: () => local,
    remoteOf: (node) => remotes.get(node),
    waitMs: 300,
    refusalOf: () => 'known here',
    mayWait: false,
    numbersTransactions: () => true,
  };
}

function command(name = 'incr', action: Action = Action.update): Command {
  const args = new Arguments();
  args.buf = Buffer.from(name);
  args.lens[0] = name.length;
  args.count = 1;
  const span = { first: 0, count: 16 };
  return { action, name, transform: () => {}, grows: true, table: 0, span, args };
}

async function run(one = command()): Promise<string> {
  const reply = new RespWriter(64);
  const answer = ((await group.execute(one, reply)) ?? reply) as RespWriter;
  return answer.buf.toString('latin1', 0, answer.pos);
}

async function runAll(commands: Command[], watch?: TransactionWatch): Promise<string> {
  const reply = new RespWriter(64);
  const isClean = (own: Reply): boolean => {
    if (watch?.dirty === true) own.nilArray();
    else own.array(commands.length);
    return watch?.dirty !== true;
  };
  const answer = ((await group.executeAll(commands, reply, isClean, watch)) ?? reply) as RespWriter;
  return answer.buf.toString('latin1', 0, answer.pos);
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const noLeader = '-CLUSTERDOWN The partition has no leader now\r\n';

class Watch implements TransactionWatch {
  dirty = false;
  changes = 0;
  rowChanged(): void {
    this.dirty = true;
    this.changes++;
  }
}

test('the pod of this process answers at once while it leads', () => {
  lead(1);
  const reply = new RespWriter(64);
  expect(group.isHere).toBe(true);
  expect(group.execute(command(), reply)).toBeUndefined();
  expect(reply.buf.toString('latin1', 0, reply.pos)).toBe(':1\r\n');
  expect(group.refusal(command())).toBe('of the pod');
});

test('commands go to the node that leads, and are not asked elsewhere again', async () => {
  lead(2);
  expect(await run()).toBe(':2\r\n');
  expect(group.leader).toBe(2);
  expect(await run()).toBe(':2\r\n');
  expect(replicas.get(3)!.ran).toEqual([]);
  expect(group.isHere).toBe(false);
  expect(group.refusal(command())).toBe('known here');
});

test('a hint is followed at once', async () => {
  lead(3);
  group.leaderIs(2);
  replicas.get(2)!.hint = 3;
  expect(await run()).toBe(':3\r\n');
  expect(group.stats).toMatchObject({ waited: 0, movedOn: 1 });
});

test('the replica of this process knows a leader', async () => {
  lead(3);
  local!.leader = 3 * perNode + 5;
  expect(await run()).toBe(':3\r\n');
  expect(group.stats.waited).toBe(0);
});

test('the node that led before is suspected once another one leads', async () => {
  group.leaderIs(2);
  group.leaderIs(2);
  group.leaderIs(0);
  const suspected = (): number[] => [...replicas.values()].map((replica) => replica.suspected);
  expect(suspected()).toEqual([0, 0, 0]);
  group.leaderIs(3);
  group.leaderIs(3);
  expect(suspected()).toEqual([0, 1, 0]);
  // This node is no peer of itself.
  lead(1);
  await run();
  expect(suspected()).toEqual([0, 1, 1]);
  lead(2);
  group.leaderIs(2);
  expect(suspected()).toEqual([0, 1, 1]);
});

test('a command waits for a leader', async () => {
  lead(0);
  const answers = Promise.all([run(), run(), run()]);
  await pause(20);
  lead(3);
  group.leaderIs(3);
  expect(await answers).toEqual([':3\r\n', ':3\r\n', ':3\r\n']);
  expect(replicas.get(3)!.ran).toHaveLength(3);
  expect(group.stats.waiting).toBe(0);
});

test('a command waits for a link', async () => {
  lead(3);
  group.leaderIs(3);
  replicas.get(3)!.wire.isUp = false;
  const answer = run();
  await pause(20);
  replicas.get(3)!.wire.isUp = true;
  expect(await answer).toBe(':3\r\n');
});

test('a command that finds no leader in time is answered so', async () => {
  lead(0);
  expect(await run()).toBe(noLeader);
  expect(group.stats).toMatchObject({ waiting: 0, withoutLeader: 1 });
});

test('a command that has waited for its keys does not wait for a leader', async () => {
  lead(0);
  const waited = command();
  waited.args.hasWaited = true;
  expect(await run(waited)).toBe(noLeader);
  expect(group.stats.waited).toBe(0);
});

test('a command that waits in a pod goes on elsewhere when that leads no more', async () => {
  lead(1);
  let open: () => void = () => {};
  local!.gate = new Promise((resolve) => (open = resolve));
  const reply = new RespWriter(64);
  reply.ok();
  const done = group.execute(command(), reply);
  lead(2);
  local!.hint = 2;
  open();
  const answer = (await done) as RespWriter;
  expect(answer.buf.toString('latin1', 0, answer.pos)).toBe(':2\r\n');
  expect(reply.buf.toString('latin1', 0, reply.pos)).toBe('+OK\r\n');
});

test('what may run here only is not sent elsewhere', async () => {
  lead(2);
  group.leaderIs(2);
  const script = { ...command('fcall'), onlyHere: 'ERR only here' };
  expect(await run(script)).toBe('-ERR only here\r\n');
  expect(await runAll([command(), script])).toBe('-ERR only here\r\n');
  expect(replicas.get(2)!.ran).toEqual([]);
  lead(1);
  expect(await run(script)).toBe(':1\r\n');
});

test('what is watched while the leader changes counts as touched', async () => {
  lead(1);
  const watch = new Watch();
  group.observe(0, Buffer.from('a'), watch);
  expect(local!.observers.size).toBe(1);
  expect(await runAll([command()], watch)).toBe('*1\r\n:1\r\n');
  lead(2);
  group.leaderIs(2);
  expect(local!.observers.size).toBe(0);
  expect(replicas.get(2)!.observers.size).toBe(1);
  watch.dirty = false;
  expect(await runAll([command()], watch)).toBe('*-1\r\n');
  group.unobserve(0, Buffer.from('a'), watch);
  expect(replicas.get(2)!.observers.size).toBe(0);
  const other = new Watch();
  group.observe(0, Buffer.from('a'), other);
  expect(await runAll([command()], other)).toBe('*1\r\n:2\r\n');
  // The request carries the remote form of the watch.
  expect(replicas.get(2)!.observers).toContain(replicas.get(2)!.watches.at(-1));
});

test('what is watched in another group fails a transaction', async () => {
  lead(2);
  group.leaderIs(2);
  const watch = new Watch();
  group.observe(0, Buffer.from('a'), watch);
  expect(watch.dirty).toBe(false);
  expect(await runAll([command()], watch)).toBe('*1\r\n:2\r\n');
  // By what tells of the other group.
  watch.rowChanged();
  expect(await runAll([command()], watch)).toBe('*-1\r\n');
  expect(replicas.get(2)!.ran).toHaveLength(1);
});

test('what is watched while the link ends counts as touched', async () => {
  lead(2);
  group.leaderIs(2);
  const watch = new Watch();
  group.observe(0, Buffer.from('a'), watch);
  replicas.get(2)!.wire.connects++;
  expect(await runAll([command()], watch)).toBe('*-1\r\n');
});

test('those who wait for a key are told when there is a leader again', () => {
  lead(2);
  group.leaderIs(2);
  let changes = 0;
  group.observe(0, Buffer.from('a'), { rowChanged: () => changes++ });
  const watch = new Watch();
  group.observe(0, Buffer.from('b'), watch);
  changes = 0;
  group.leaderIs(0);
  expect(changes).toBe(0);
  group.leaderIs(2);
  expect(changes).toBe(1);
  expect(watch.changes).toBe(0);
  group.leaderIs(3);
  expect(changes).toBeGreaterThan(1);
  expect(watch.changes).toBe(1);
});

test('a replica of this process that is closed is forgotten', async () => {
  lead(1);
  const watch = new Watch();
  group.observe(0, Buffer.from('a'), watch);
  local = undefined;
  lead(3);
  group.localChanged();
  group.leaderIs(3);
  expect(await run()).toBe(':3\r\n');
  expect(await runAll([command()], watch)).toBe('*-1\r\n');
});

function settled(): { outcomes: Outcome[]; position: number } {
  const outcomes: Outcome[] = [];
  const position = ticks.endTick();
  if (position >= 0) ticks.whenSettled(position, (outcome) => outcomes.push(outcome));
  return { outcomes, position };
}

test('a tick waits for the groups that it has touched', async () => {
  lead(1);
  local!.position = 7;
  expect(ticks.endTick()).toBe(-1);
  await run();
  const { outcomes } = settled();
  expect(outcomes).toEqual([]);
  local!.outcomes.pop()!('committed');
  expect(outcomes).toEqual(['committed']);
  expect(ticks.endTick()).toBe(-1);
});

test('a tick that has seen what is undone has an unknown outcome, and others do not', async () => {
  lead(1);
  local!.losses++;
  await run();
  expect(settled().outcomes).toEqual([]);
  await run();
  local!.losses++;
  lead(2);
  group.leaderIs(2);
  expect(settled()).toMatchObject({ outcomes: ['unknown'] });
  await run();
  expect(ticks.endTick()).toBe(-1);
});

// What ran has been in so many ticks of the pod, some of which may have been ended before, for others.
test.each<[number, boolean, Record<Outcome, Outcome>]>([
  [1, false, { committed: 'committed', lost: 'lost', unknown: 'unknown' }],
  [2, false, { committed: 'committed', lost: 'unknown', unknown: 'unknown' }],
  [1, true, { committed: 'unknown', lost: 'lost', unknown: 'unknown' }],
])(
  'a tick that was %i of the pod, undone: %s, is lost only as a whole',
  async (ticks, undone, told) => {
    lead(1);
    for (const outcome of ['committed', 'lost', 'unknown'] as const) {
      await run();
      local!.position = local!.lastPosition += ticks;
      if (undone) local!.losses++;
      const { outcomes } = settled();
      local!.outcomes.pop()!(outcome);
      expect(outcomes).toEqual([told[outcome]]);
    }
  },
);

test('a group that is used before it is made has its number once it is', () => {
  const place = { group: 0 };
  const early = new GroupExecutor({ ...groupOptions(), group: () => place.group });
  expect(early.group).toBe(0);
  place.group = 17;
  expect(early.group).toBe(17);
});

test('a tick of several groups is lost if all of them are', async () => {
  const others = new Replica(1);
  others.role = 'leader';
  const other = new GroupExecutor({ ...groupOptions(), group: () => 17, local: () => others });
  lead(1);
  for (const [one, two, both] of [
    ['committed', 'committed', 'committed'],
    ['lost', 'lost', 'lost'],
    ['lost', 'committed', 'unknown'],
    ['committed', 'lost', 'unknown'],
    ['unknown', 'lost', 'unknown'],
  ] as const) {
    await run();
    await other.execute(command(), new RespWriter(64));
    for (const pod of [local!, others]) pod.position = ++pod.lastPosition;
    const { outcomes } = settled();
    local!.outcomes.pop()!(one);
    expect(outcomes).toEqual([]);
    others.outcomes.pop()!(two);
    expect(outcomes).toEqual([both]);
  }
});

// ---- commands that run on the pod of this process after they have waited for a leader

/** Waits until the pod of this process is asked for an outcome, and gives it. */
async function logTells(outcome: Outcome): Promise<void> {
  while (local!.outcomes.length === 0) await new Promise(setImmediate);
  local!.outcomes.pop()!(outcome);
}

/** Runs commands while the group has no leader, and then makes this process the leader. `answer` is undefined until a command is answered. */
async function startLate(...all: Command[]): Promise<{ answer: string | undefined }[]> {
  lead(0);
  local!.position = 7;
  const seen = all.map((one) => {
    const it: { answer: string | undefined } = { answer: undefined };
    void run(one).then((answer) => (it.answer = answer));
    return it;
  });
  await pause(5);
  lead(1);
  group.leaderIs(1);
  await until(() => local!.ran.length === all.length);
  return seen;
}

function leadNext(): void {
  lead(2);
  group.leaderIs(2);
}

test('what has waited for a leader is answered once the log has it, and waits for it with others', async () => {
  const seen = await startLate(command(), command(), command('get', Action.fetch));
  await pause(5);
  expect(seen.map(({ answer }) => answer)).toEqual([undefined, undefined, undefined]);
  expect(local!.outcomes).toHaveLength(1);
  await logTells('committed');
  await expect.poll(() => seen.map(({ answer }) => answer)).toEqual([':1\r\n', ':1\r\n', ':1\r\n']);
  // The tick in which it is answered waits for nothing.
  expect(ticks.endTick()).toBe(-1);
});

// A write by its number, by which the first attempt is recorded, so that it is done once.
test.each<[string, Outcome, Action, number]>([
  ['a write', 'lost', Action.update, 1],
  ['a write', 'unknown', Action.update, 1],
  ['a read', 'lost', Action.fetch, 0],
  ['a read', 'unknown', Action.fetch, 0],
])('%s whose outcome is %s runs at the next leader', async (_name, outcome, action, numbers) => {
  const one = command('one', action);
  const { transform } = one;
  const ran: { transform: unknown; once: unknown }[] = [];
  for (const node of [1, 2]) {
    const replica = replicas.get(node)!;
    const execute = replica.execute.bind(replica);
    replica.execute = (sent, reply) => {
      if (replica.role === 'leader') ran.push({ transform: sent.transform, once: sent.once });
      return execute(sent, reply);
    };
  }
  const [seen] = await startLate(one);
  leadNext();
  await logTells(outcome);
  await expect.poll(() => seen!.answer).toBe(':2\r\n');
  const [first, second] = ran;
  expect(first!.transform === transform).toBe(numbers === 0);
  expect(second!.once !== undefined).toBe(numbers === 1);
  expect(second!.once).toBe(first!.once);
});

test('what was undone while it ran runs at the next leader', async () => {
  const execute = local!.execute.bind(local);
  local!.execute = (sent, reply) => {
    const done = execute(sent, reply);
    local!.losses++;
    return done;
  };
  const [seen] = await startLate(command());
  leadNext();
  await logTells('committed');
  await expect.poll(() => seen!.answer).toBe(':2\r\n');
});

// In the moment in which a node begins to lead, for one.
test.each<[string, (reply: RespWriter) => MaybePromise<Reply | void>]>([
  ['a command', (reply) => group.execute(command(), reply)],
  ['a transaction', (reply) => group.executeAll([command()], reply, () => true)],
])(
  '%s that has waited in the pod runs at the next leader if the log loses it',
  async (_name, begin) => {
    lead(1);
    local!.position = 7;
    let open!: () => void;
    local!.gate = new Promise((resolve) => (open = resolve));
    // Shared with other commands, which are answered meanwhile.
    const shared = new RespWriter(64);
    const done = begin(shared);
    shared.integer(99);
    local!.gate = undefined;
    open();
    await until(() => local!.ran.length === 1);
    leadNext();
    await logTells('lost');
    const answer = (await done) as RespWriter;
    expect(answer.buf.toString('latin1', 0, answer.pos)).toBe(':2\r\n');
    expect(shared.buf.toString('latin1', 0, shared.pos)).toBe(':99\r\n');
  },
);

test('without a number a write with an unknown outcome is not done again', async () => {
  group.setReplicas([1]);
  const [seen] = await startLate(command());
  await logTells('unknown');
  await expect.poll(() => seen!.answer).toBe('-ERR outcome unknown\r\n');
  expect(local!.ran).toHaveLength(1);
});

test('a script, whose messages leave here, does not run again', async () => {
  const [seen] = await startLate(command('eval'));
  await expect.poll(() => seen!.answer).toBe(':1\r\n');
  expect(settled().outcomes).toEqual([]);
  await logTells('lost');
});

test('what is started here is not sent elsewhere', async () => {
  lead(1);
  local!.position = 7;
  const one = { ...command(), once: 65_537 };
  const { waits, done } = group.startHere(one, new RespWriter(64));
  expect([waits, local!.ran.length]).toEqual([false, 1]);
  leadNext();
  await logTells('lost');
  await done;
  expect(one.notRun).toEqual({ why: 'unknown', leader: 0 });
  expect(replicas.get(2)!.ran).toEqual([]);
  lead(1);
  local!.gate = Promise.resolve();
  expect(group.startHere(one, new RespWriter(64)).waits).toBe(true);
});
