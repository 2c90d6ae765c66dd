// The engine's module through its interface: elections, membership, snapshots, that a run repeats, and that bad
// input or a library's panic never takes more than its own group along.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EngineCluster, firstSnapshot, seededEngine } from './engine-fixture.ts';
import type { Node } from './engine-fixture.ts';
import { appendTask, emptyConf, FrameReader, FrameWriter, MessageType } from './frames.ts';
import type { Message } from './frames.ts';
import { ConfChangeType, ErrorCode, RaftError, Role } from './raft-engine.ts';
import type { GroupOptions, RaftEngine } from './raft-engine.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const applied = ({ applied: entries }: Node): string[] =>
  entries
    .filter(({ kind, data }) => kind === 0 && data.length > 0)
    .map(({ data }) => String(Buffer.from(data)));

function message(fields: Partial<Message>): Message {
  const none = { term: 0, logTerm: 0, index: 0, commit: 0, vote: 0, reject: false, rejectHint: 0 };
  return {
    ...none,
    type: MessageType.heartbeat,
    to: 1,
    from: 2,
    context: new Uint8Array(0),
    entries: [],
    snapshot: undefined,
    responses: [],
    hasHardState: true,
    ...fields,
  };
}

const options: GroupOptions = {
  id: 1,
  electionTicks: 10,
  heartbeatTicks: 1,
  snapshot: firstSnapshot([1]),
};

function code(call: () => unknown): number {
  try {
    call();
  } catch (error) {
    if (error instanceof RaftError) return error.code;
    throw error;
  }
  return 0;
}

function elected(cluster: EngineCluster): Node {
  cluster.tick(40);
  const { leader } = cluster;
  expect(leader).toBeDefined();
  return leader!;
}

describe.each([false, true])('a group of three, asynchronous storage %s', (asyncStorage) => {
  test('elects, commits in order, and hands its leadership over', () => {
    const cluster = new EngineCluster([1, 2, 3], [1, 2, 3], asyncStorage);
    const leader = elected(cluster);
    const texts = Array.from({ length: 20 }, (_, i) => `entry ${i}`);
    for (const text of texts) {
      leader.engine.propose(leader.group, [bytes(text)]);
      cluster.settle();
    }
    for (const node of cluster.nodes) expect(applied(node)).toEqual(texts);
    leader.engine.readIndex(leader.group, bytes('read 1'));
    cluster.settle();
    expect(leader.reads).toEqual(['read 1']);
    const to = cluster.nodes.find(({ id }) => id !== leader.id)!;
    leader.engine.transferLeader(leader.group, to.id);
    cluster.settle();
    expect(cluster.leader).toBe(to);
  });

  test('a replica cut off disturbs nobody, and a leader cut off steps down', () => {
    const cluster = new EngineCluster([1, 2, 3], [1, 2, 3], asyncStorage);
    const leader = elected(cluster);
    const { term } = leader.engine.status(leader.group);
    const cutOff = cluster.nodes.find((node) => node !== leader)!;
    for (const node of cluster.nodes) node.down = node !== cutOff;
    cluster.tick(60);
    expect(cutOff.engine.status(cutOff.group).term).toBe(term);
    for (const node of cluster.nodes) node.down = false;
    cluster.tick(3);
    expect(cluster.leader).toBe(leader);
    for (const node of cluster.nodes) node.down = node !== leader;
    cluster.tick(25);
    expect(leader.engine.status(leader.group).role).not.toBe(Role.leader);
    expect(code(() => leader.engine.propose(leader.group, [bytes('x')]))).toBe(ErrorCode.dropped);
  });

  test('voters are replaced by a joint change, a learner before', () => {
    const cluster = new EngineCluster([1, 2, 3, 4, 5], [1, 2, 3], asyncStorage);
    const leader = elected(cluster);
    const out = cluster.nodes.find(({ id }) => id <= 3 && id !== leader.id)!;
    const change = (changes: [number, number][], transition: 0 | 1 | 2): void => {
      leader.engine.proposeConfChange(
        leader.group,
        changes.map(([type, id]) => ({ type, id })),
        transition,
      );
      cluster.tick(5);
    };
    change([[ConfChangeType.addLearner, 4]], 0);
    expect(leader.conf?.learners).toEqual([4]);
    change(
      [
        [ConfChangeType.addVoter, 4],
        [ConfChangeType.addVoter, 5],
        [ConfChangeType.remove, out.id],
      ],
      2,
    );
    expect(leader.conf?.outgoing).toHaveLength(3);
    change([], 0);
    expect(leader.conf?.outgoing).toEqual([]);
    expect(leader.conf?.voters).toHaveLength(4);
    const { conf } = leader.engine.progress(leader.group);
    expect(conf.voters).toEqual([1, 2, 3, 4, 5].filter((id) => id !== out.id));
  });

  test('whose entries are gone is sent the snapshot', () => {
    const cluster = new EngineCluster([1, 2, 3], [1, 2, 3], asyncStorage);
    const leader = elected(cluster);
    const slow = cluster.nodes.find((node) => node !== leader)!;
    slow.down = true;
    for (let i = 0; i < 50; i++) {
      leader.engine.propose(leader.group, [bytes(`${i}`)]);
      cluster.settle();
    }
    const { applied: index, term } = leader.engine.status(leader.group);
    const conf = { ...emptyConf, voters: [1, 2, 3] };
    leader.engine.setSnapshot(leader.group, { index, term, conf, data: bytes('where') });
    leader.engine.compact(leader.group, index - 5);
    expect(leader.engine.status(leader.group).firstIndex).toBe(index - 4);
    slow.down = false;
    cluster.tick(5);
    leader.engine.reportSnapshot(leader.group, slow.id, true);
    cluster.tick(3);
    expect(slow.snapshots).toBe(1);
    expect(slow.engine.status(slow.group).commit).toBe(leader.engine.status(leader.group).commit);
  });

  test('repeats itself bit by bit', () => {
    const run = (): string => {
      const cluster = new EngineCluster([1, 2, 3], [1, 2, 3], asyncStorage);
      const leader = elected(cluster);
      leader.engine.propose(leader.group, [bytes('a'), bytes('b')]);
      cluster.tick(30);
      return cluster.nodes.map(({ trace }) => trace.join('\n')).join('\n\n');
    };
    expect(run()).toBe(run());
  });
});

describe('bad input', () => {
  test('a panic ends one group; the others go on, and its number is used again', () => {
    const engine = seededEngine(1);
    const dies = engine.create(options);
    const lives = engine.create(options);
    const beyond = message({ term: 9, commit: 99 });
    expect(code(() => engine.step(dies, beyond))).toBe(ErrorCode.dead);
    expect(() => engine.status(dies)).toThrow('the group is dead');
    expect(engine.readyAll(1 << 20).map(({ group }) => group)).not.toContain(dies);
    engine.campaign(lives);
    expect(engine.tickAll()).toEqual([]);
    expect(engine.status(lives).term).toBe(2);
    engine.destroy(dies);
    expect(code(() => engine.tick(dies))).toBe(ErrorCode.malformed);
    expect(engine.create(options)).toBe(dies);
    expect(engine.status(dies).term).toBe(1);
  });

  test.each([7, 4_000_000_000, -1])('there is no group %d', (group) => {
    const engine = seededEngine(1);
    engine.create(options);
    for (const call of [
      () => engine.tick(group),
      () => engine.ready(group),
      () => engine.advance(group),
      () => engine.status(group),
      () => engine.destroy(group),
      () => engine.storageDone(group, 'append'),
      () => engine.step(group, message({})),
    ]) {
      expect(code(call)).toBe(ErrorCode.malformed);
    }
  });

  test.each([
    ['a commit beyond the log', { hard: { term: 1, vote: 0, commit: 9 } }],
    ['an applied index beyond the commit', { applied: 2 }],
    ['a gap', { entries: [{ term: 1, index: 3, kind: 0, data: bytes('') }] }],
    ['a term that goes back', { entries: [{ term: 0, index: 2, kind: 0, data: bytes('') }] }],
    ['an id of 0', { id: 0 }],
    ['no ticks', { electionTicks: 0 }],
  ] as [string, Partial<GroupOptions>][])('a group is not made from %s', (_, wrong) => {
    expect(code(() => seededEngine(1).create({ ...options, ...wrong }))).toBe(ErrorCode.refused);
  });

  test('what only a group itself may send is not taken from the network', () => {
    const engine = seededEngine(1);
    const group = engine.create({ ...options, asyncStorage: true });
    const local = [
      message({ type: MessageType.hup }),
      message({ type: MessageType.storageAppendResponse }),
      message({ from: appendTask, type: MessageType.storageAppendResponse }),
      message({ to: 2 }),
    ];
    for (const m of local) expect(code(() => engine.step(group, m))).toBe(ErrorCode.malformed);
    expect(engine.stepAll([...local, message({})].map((m) => ({ group, message: m })))).toEqual(
      new Map(local.map((_, i) => [i, ErrorCode.malformed])),
    );
  });

  test('storage that has nothing to do is never done', () => {
    const engine = seededEngine(1);
    const group = engine.create({ ...options, asyncStorage: true });
    expect(code(() => engine.storageDone(group, 'append'))).toBe(ErrorCode.refused);
    expect(code(() => engine.advance(group))).toBe(ErrorCode.refused);
  });

  test('leaving a joint configuration takes transition 0', () => {
    const engine = seededEngine(1);
    const group = engine.create(options);
    expect(code(() => engine.proposeConfChange(group, [], 2))).toBe(ErrorCode.malformed);
  });

  test('any message at all is taken, refused, or ends its group alone', () => {
    const engine = seededEngine(1);
    const other = engine.create(options);
    const small = fc.nat({ max: 12 });
    const entry = fc.record({
      term: small,
      index: small,
      kind: fc.nat({ max: 2 }),
      data: fc.uint8Array({ maxLength: 8 }),
    });
    const anyMessage = fc.record({
      type: fc.nat({ max: 30 }),
      from: small,
      term: small,
      logTerm: small,
      index: small,
      commit: small,
      vote: small,
      reject: fc.boolean(),
      rejectHint: small,
      entries: fc.array(entry, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 8 }), (list) => {
        const group = engine.create({ ...options, snapshot: firstSnapshot([1, 2, 3]) });
        for (const fields of list) {
          if (code(() => engine.step(group, message(fields))) === ErrorCode.dead) break;
          engine.readyAll(1 << 20);
        }
        engine.destroy(group);
        engine.tick(other);
      }),
      { numRuns: 300 },
    );
  });
});

test('large input and output pass, memory grows under the views', () => {
  const engine: RaftEngine = seededEngine(1);
  const group = engine.create(options);
  engine.campaign(group);
  for (let r = engine.ready(group); r !== undefined; r = engine.ready(group)) engine.advance(group);
  const large = new Uint8Array(24 << 20).fill(7);
  engine.propose(group, [large, bytes('small')]);
  const ready = engine.ready(group)!;
  expect(ready.entries.map(({ data }) => data.length)).toEqual([large.length, 5]);
  expect(Buffer.from(ready.entries[0]!.data).equals(large)).toBe(true);
  engine.advance(group);
  expect(engine.ready(group)?.committed).toHaveLength(2);
  expect(engine.memory().system).toBeGreaterThan(large.length);
});

test('frames come back as they were, and what is cut short is refused', () => {
  const original = message({
    type: MessageType.append,
    entries: [{ term: 3, index: 2 ** 40, kind: 0, data: bytes('abc') }],
    context: bytes('ctx'),
    snapshot: { index: 4, term: 2, conf: { ...emptyConf, learners: [9] }, data: bytes('s') },
    hasHardState: false,
  });
  const frame = new FrameWriter().framed(original).done();
  expect(new FrameReader(frame).framed()).toEqual(original);
  for (let end = 0; end < frame.length; end++) {
    expect(() => new FrameReader(frame, 0, end).framed()).toThrow();
  }
});

test('what a reader hands out stays when the bytes that it read are used again', () => {
  const frame = Buffer.from(new FrameWriter().u32(3).raw(bytes('abc')).done());
  const read = new FrameReader(frame).bytes();
  frame.fill(0);
  expect(Buffer.from(read).toString()).toBe('abc');
});

test('a frame grows in the middle of any number', () => {
  for (let length = 1000; length < 1032; length++) {
    const w = new FrameWriter().raw(new Uint8Array(length)).u32(1).u64(2).u32(3);
    const r = new FrameReader(w.done(), length);
    expect([r.u32(), r.u64(), r.u32()]).toEqual([1, 2, 3]);
  }
});
