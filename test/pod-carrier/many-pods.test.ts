// Many pods behind one link: each with a log of its own, which may be stuck, lose what was answered, or be led by another
// node; and they come and go.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PodLink } from '../../access/gateway/pods/pod-link.ts';
import type { LaneUser, RequestLane } from '../../access/gateway/pods/request-lane.ts';
import { ClusterListener } from '../../cluster-links/cluster-listener.ts';
import type { LocalPod } from '../../contracts/local-pod.ts';
import { PodFixture, TextReply } from '../../storage-node/pod-fixture.ts';
import { PodServer } from '../../storage-node/pod-server/pod-server.ts';
import { Arguments } from '../../universal-row/arguments.ts';
import type { Command, NotRun } from '../../universal-row/command.ts';
import type { Outcome } from '../../universal-row/executor.ts';
import {
  AnswerFlag,
  CommandFlag,
  CommandHead,
  type Session,
} from '../../universal-row/protocol/row-messages.ts';
import { copyValue } from '../../universal-row/protocol/values.ts';
import type { WireReader } from '../../universal-row/protocol/wire.ts';
import type { Reply } from '../../universal-row/reply.ts';

const context = {
  identity: { cluster: 'test', node: '1', incarnation: 1, level: 1 },
  secret: Buffer.from('the secret of the test'),
};

/** A pod whose log is in the test's hands. */
class TestPod implements LocalPod {
  role: LocalPod['role'] = 'leader';
  leader = 0;
  losses = 0;
  lastPosition = 0;
  isPaused = false;
  isWithin = (): boolean => false;
  read = (): never => {
    throw new Error('there is one replica');
  };
  /** Outcomes have to be told. */
  isStuck = false;
  /** Commands wait for this first. */
  gate: Promise<void> | undefined;
  #position = 0;
  #waiting: ((outcome: Outcome) => void)[] = [];
  readonly fixture: PodFixture;

  constructor(fixture: PodFixture) {
    this.fixture = fixture;
  }

  get isShut(): boolean {
    return this.role !== 'leader';
  }

  execute(command: Command, reply: Reply): Promise<Reply | void> | Reply | void {
    if (this.gate !== undefined) {
      const own = reply.fork(reply.mark());
      return this.gate.then(() => {
        this.#runOrRefuse(command, own);
        return own;
      });
    }
    this.#runOrRefuse(command, reply);
  }

  #runOrRefuse(command: Command, reply: Reply): void {
    if (this.role === 'leader') {
      void this.fixture.pod.execute(command, reply);
      return;
    }
    reply.error('ERR not here');
    command.notRun = this.#notRun;
  }

  get #notRun(): NotRun {
    return { why: 'notLeader', leader: this.leader };
  }

  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
  ): ReturnType<LocalPod['executeAll']> {
    if (this.role === 'leader') return this.fixture.pod.executeAll(commands, reply, before);
    reply.error('ERR not here');
    commands[0]!.notRun = this.#notRun;
  }

  flushTick(): number {
    this.fixture.pod.flushTick();
    return this.isStuck ? ++this.#position : -1;
  }
  endTick(): number {
    return this.flushTick();
  }
  whenSettled(_position: number, then: (outcome: Outcome) => void): void {
    this.#waiting.push(then);
  }
  settle(outcome: Outcome): void {
    for (const then of this.#waiting.splice(0)) then(outcome);
  }
  refusal(): undefined {}
  observe(): void {}
  unobserve(): void {}
  follow(): void {}
}

let pods: Map<number, TestPod>;
let opened: PodFixture[];
let listener: ClusterListener;
let link: PodLink;
let warnings: string[];

async function newPod(table: number): Promise<TestPod> {
  const fixture = await PodFixture.open({ rules: { [table]: {} } });
  opened.push(fixture);
  const pod = new TestPod(fixture);
  pods.set(table, pod);
  return pod;
}

beforeEach(async () => {
  pods = new Map();
  opened = [];
  warnings = [];
  const report = (_level: string, message: string): void => void warnings.push(message);
  const server = new PodServer({
    podOf: (table) => {
      const executor = pods.get(table);
      return executor && { executor, mayWait: false };
    },
    answer: () => undefined,
    report,
    failed: (error) => {
      throw error;
    },
  });
  listener = new ClusterListener(context, report);
  listener.serve('pods', server);
  await listener.listen('127.0.0.1', 0);
  link = new PodLink({ host: '127.0.0.1', port: listener.port, node: '1', context, report });
  await link.start();
});

afterEach(async () => {
  link.close();
  await listener.close();
  for (const { pod } of opened) await pod.close();
  expect(warnings).toEqual([]);
});

/** Outcome of a request. */
class Request implements LaneUser {
  readonly work = undefined;
  readonly answer: Promise<string>;
  #resolve: (text: string) => void = () => {};
  #text = '';

  constructor() {
    this.answer = new Promise((resolve) => (this.#resolve = resolve));
  }
  part(values: Buffer): void {
    this.#text += `part of ${values.length}`;
  }
  values(flags: number, reader: WireReader): void {
    if (flags & AnswerFlag.isUnknown) {
      this.#text = 'unknown';
      return;
    }
    if (flags & (AnswerFlag.isEmpty | AnswerFlag.wasInParts)) return;
    const reply = new TextReply();
    copyValue(reader, reply);
    this.#text += String(reply);
  }
  done(): void {
    this.#resolve(this.#text);
  }
  refused(kind: number, _retryMs: number, text: string): void {
    this.#resolve(`refused ${kind} ${text}`.trim());
  }
  failed(): void {
    this.#resolve('failed');
  }
}

const sessionOf = (table: number): Session => ({
  ...{ tenant: 1, table, first: table, count: 1, version: 2, epoch: 0, isMetered: false },
});

/** Sends a command without waiting for its answer. */
function send(
  lane: RequestLane,
  session: Session,
  line: string,
  deadlineMs?: number,
): Promise<string> {
  const words = line.split(' ');
  const args = new Arguments();
  args.reserve(words.length);
  args.buf = Buffer.from(words.join(''));
  let at = 0;
  for (const word of words) {
    args.starts[args.count] = at;
    args.lens[args.count++] = word.length;
    at += word.length;
  }
  const head = new CommandHead();
  head.transform = link.numberOf(words[0]!)!;
  if (deadlineMs !== undefined) {
    head.flags |= CommandFlag.hasDeadline;
    head.deadlineMs = deadlineMs;
  }
  const request = new Request();
  link.command(lane, session, head, args, request);
  return request.answer;
}

const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));
/** Whether there is no answer yet, after some time. */
async function isPending(answer: Promise<string>): Promise<boolean> {
  return Promise.race([answer.then(() => false), soon().then(() => true)]);
}

test('tables are served while their pods are here', async () => {
  const lane = link.takeLane();
  expect(await send(lane, sessionOf(7), 'get a')).toBe('refused 4');
  await newPod(7);
  expect(await send(lane, sessionOf(7), 'set a 1')).toBe('OK');
  await newPod(8);
  expect(await send(lane, sessionOf(8), 'get a')).toBe('(nil)');
  expect(await send(lane, sessionOf(7), 'incr a')).toBe('2');
  pods.delete(7);
  expect(await send(lane, sessionOf(7), 'incr a')).toBe('refused 4');
  expect(await send(lane, sessionOf(8), 'set a 2')).toBe('OK');
});

test('a log that is stuck holds up no answers of other pods', async () => {
  const stuck = await newPod(7);
  await newPod(8);
  stuck.isStuck = true;
  const waiting = send(link.takeLane(), sessionOf(7), 'set a 1');
  const other = link.takeLane();
  for (let i = 1; i < 4; i++) {
    expect(await send(other, sessionOf(8), 'incr n')).toBe(String(i));
  }
  expect(await isPending(waiting)).toBe(true);
  stuck.settle('committed');
  expect(await waiting).toBe('OK');
});

test('answers of a lane come in the order of its requests, whatever pods give them', async () => {
  const stuck = await newPod(7);
  await newPod(8);
  stuck.isStuck = true;
  const lane = link.takeLane();
  const first = send(lane, sessionOf(7), 'set a 1');
  const second = send(lane, sessionOf(8), 'set a 2');
  const third = send(lane, sessionOf(9), 'set a 3');
  expect(await isPending(second)).toBe(true);
  stuck.settle('committed');
  expect(await Promise.all([first, second, third])).toEqual(['OK', 'OK', 'refused 4']);
});

describe('a pod that does not lead', () => {
  test('says so, and who does', async () => {
    const pod = await newPod(7);
    pod.role = 'follower';
    const lane = link.takeLane();
    expect(await send(lane, sessionOf(7), 'set a 1')).toBe('refused 3 0');
    pod.leader = 3;
    expect(await send(lane, sessionOf(7), 'set a 1')).toBe('refused 3 3');
    pod.role = 'leader';
    expect(await send(lane, sessionOf(7), 'get a')).toBe('(nil)');
  });

  test('runs nothing of what was sent behind a command that it has refused', async () => {
    const pod = await newPod(7);
    const lane = link.takeLane();
    const session = sessionOf(7);
    expect(await send(lane, session, 'set a 1')).toBe('OK');
    pod.role = 'follower';
    let open: () => void = () => {};
    pod.gate = new Promise((resolve) => (open = resolve));
    const all = ['append a 2', 'append a 3', 'append a 4'].map((line) => send(lane, session, line));
    await soon();
    // The first is refused when it gets to it. The others come to a leader.
    pod.gate.then(
      () => {
        pod.role = 'leader';
        pod.gate = undefined;
      },
      () => {},
    );
    open();
    expect(await Promise.all(all)).toEqual(['refused 3 0', 'refused 3 0', 'refused 3 0']);
    expect(await send(lane, session, 'append a 5')).toBe('2');
    expect(await send(lane, session, 'get a')).toBe('15');
  });

  test('refuses behind the answers that have yet to be settled', async () => {
    const pod = await newPod(7);
    pod.isStuck = true;
    const lane = link.takeLane();
    const session = sessionOf(7);
    const first = send(lane, session, 'set a 1');
    await soon();
    pod.role = 'follower';
    const second = send(lane, session, 'set a 2');
    expect(await isPending(second)).toBe(true);
    pod.settle('unknown');
    expect(await Promise.all([first, second])).toEqual(['unknown', 'refused 3 0']);
  });
});

describe('answers that the log has lost', () => {
  test('are unknown, and those of other ticks are not', async () => {
    const pod = await newPod(7);
    pod.isStuck = true;
    const lane = link.takeLane();
    const first = send(lane, sessionOf(7), 'set a 1');
    await soon();
    const second = send(lane, sessionOf(7), 'set a 2');
    await soon();
    pod.settle('lost');
    expect(await Promise.all([first, second])).toEqual(['unknown', 'unknown']);
    const third = send(lane, sessionOf(7), 'set a 3');
    await soon();
    pod.settle('committed');
    expect(await third).toBe('OK');
  });

  test('between evaluation and answer are unknown', async () => {
    const pod = await newPod(7);
    let open: () => void = () => {};
    pod.gate = new Promise((resolve) => (open = resolve));
    const first = send(link.takeLane(), sessionOf(7), 'set a 1');
    await soon();
    pod.losses++;
    open();
    expect(await first).toBe('unknown');
    pod.gate = undefined;
    expect(await send(link.takeLane(), sessionOf(7), 'get a')).toBe('1');
  });
});

test('a command that could not begin in time is refused, those behind it are not', async () => {
  const pod = await newPod(7);
  const lane = link.takeLane();
  const session = sessionOf(7);
  let open: () => void = () => {};
  pod.gate = new Promise((resolve) => (open = resolve));
  const first = send(lane, session, 'set a 1');
  const second = send(lane, session, 'set a 2', 20);
  const third = send(lane, session, 'append a 3', 60_000);
  // On a busy machine the second one arrives late, and its time begins then.
  await sleep(300);
  pod.gate = undefined;
  open();
  expect(await Promise.all([first, second, third])).toEqual(['OK', 'refused 5', '2']);
  expect(await send(lane, session, 'get a')).toBe('13');
});

test('a node that is at another address is found there', async () => {
  await newPod(7);
  const lane = link.takeLane();
  expect(await send(lane, sessionOf(7), 'set a 1')).toBe('OK');
  const { port } = listener;
  link.setPlace({ host: '127.0.0.2', port });
  expect(link.isUp).toBe(false);
  link.setPlace({ host: '127.0.0.1', port });
  await link.ready;
  expect(await send(lane, sessionOf(7), 'get a')).toBe('1');
  warnings.length = 0;
});
