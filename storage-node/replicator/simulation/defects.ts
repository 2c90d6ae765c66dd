// Planted bugs: each is a mistake that a driver of this engine could make, put in at a seam. The simulator must find
// every one of them.

import type { Disk, DiskFile } from '../../../universal-row/environment.ts';
import { MessageType } from '../engine/frames.ts';
import type { Message, ReadState } from '../engine/frames.ts';
import { RaftError } from '../engine/raft-engine.ts';
import type { GroupReady, RaftEngine } from '../engine/raft-engine.ts';
import { FencedType } from '../raft/fence.ts';
import type { RaftGroup } from '../raft/raft-group.ts';
import type { RaftPod } from '../raft/raft-pod.ts';
import type { SimulatedMachine } from './machine.ts';
import type { ExportedState, StateMachine } from '../raft/state-machine.ts';

export interface Defect {
  name: string;
  disk(disk: Disk): Disk;
  engine(engine: RaftEngine): RaftEngine;
  machine(machine: StateMachine): StateMachine;
  /** The end of a node's event-loop tick. */
  work(pod: RaftPod, group: RaftGroup): boolean;
  read(group: RaftGroup, then: (isSafe: boolean) => void): void;
  /** A message beside heartbeats on its way out. */
  sent(message: Message): Message;
}

const none: Defect = {
  name: 'none',
  disk: (disk) => disk,
  engine: (engine) => engine,
  machine: (machine) => machine,
  work: (pod) => pod.work(),
  read: (group, then) => group.readBarrier(then),
  sent: (message) => message,
};

export const noDefect = none;

/** The object, with some of its methods replaced. */
function altered<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get(object, name) {
      const own = (methods as Record<PropertyKey, unknown>)[name];
      if (own !== undefined) return own;
      const value = (object as Record<PropertyKey, unknown>)[name];
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });
}

/** A file whose syncs of the log do nothing. */
function unsynced(disk: Disk): Disk {
  const lie = (file: DiskFile): DiskFile =>
    altered(file, { sync: () => Promise.resolve(), syncNow: () => undefined });
  return altered(disk, {
    open: (path, mode) => {
      const file = disk.open(path, mode);
      return path.includes('/seg-') ? lie(file) : file;
    },
  });
}

/** The engine with a change to its initial state. */
function recreated(
  change: (options: Parameters<RaftEngine['create']>[0]) => Partial<typeof options>,
): Defect['engine'] {
  return (engine) =>
    altered(engine, {
      create: (options) => engine.create({ ...options, ...change(options) }),
    });
}

/** Releases messages that wait for the disk at once. */
function eager(isEager: (message: Message) => boolean): Defect['engine'] {
  return (engine) => {
    const early: Message[] = [];
    return altered(engine, {
      readyAll(maxBytes) {
        const readies = engine.readyAll(maxBytes);
        for (const { ready } of readies) {
          if (ready instanceof Error) continue;
          const waiting = ready.messages
            .filter(({ type }) => type === MessageType.storageAppend)
            .flatMap(({ responses }) => responses)
            .filter((m) => m.to !== m.from && m.to < 1e9 && isEager(m));
          early.push(...waiting);
          ready.messages.push(...waiting);
        }
        return readies;
      },
      storageDone(group, kind) {
        const messages = engine.storageDone(group, kind);
        return messages.filter(
          (m) =>
            !early.some(
              ({ type, to, index, term }) =>
                type === m.type && to === m.to && index === m.index && term === m.term,
            ),
        );
      },
    });
  };
}

/** Reads that wait for the question of the first of them. */
const joined = new WeakMap<RaftGroup, ((isSafe: boolean) => void)[]>();

export const defects: readonly Defect[] = [
  { ...none, name: 'the log is never synced', disk: unsynced },
  {
    ...none,
    name: 'the vote is forgotten at a restart',
    engine: recreated(({ hard }) => ({ hard: { ...hard!, vote: 0 } })),
  },
  {
    ...none,
    name: 'the term is forgotten at a restart',
    engine: recreated(({ hard, snapshot, entries }) => ({
      hard: {
        term: Math.max(snapshot.term, entries?.at(-1)?.term ?? 0),
        vote: 0,
        commit: hard!.commit,
      },
    })),
  },
  {
    ...none,
    name: 'all of the log counts as committed at a restart',
    engine: recreated(({ hard, snapshot, entries }) => ({
      hard: { ...hard!, commit: entries?.at(-1)?.index ?? snapshot.index },
    })),
  },
  {
    ...none,
    name: 'the last entry is taken for a torn one at a restart',
    engine: recreated(({ hard, snapshot, entries }) => {
      const kept = entries!.slice(0, -1);
      const last = kept.at(-1)?.index ?? snapshot.index;
      return { entries: kept, hard: { ...hard!, commit: Math.min(hard!.commit, last) } };
    }),
  },
  {
    ...none,
    name: 'an append is answered before it is on disk',
    engine: eager(({ type }) => type === MessageType.appendResponse),
  },
  {
    ...none,
    name: 'a vote is given before it is on disk',
    engine: eager(({ type }) => type === MessageType.voteResponse),
  },
  {
    ...none,
    name: 'the members are forgotten at a restart',
    engine: recreated(({ id, snapshot }) =>
      snapshot.index > 1
        ? { snapshot: { ...snapshot, conf: { ...snapshot.conf, voters: [id] } } }
        : {},
    ),
  },
  {
    ...none,
    name: 'a read is answered without asking the others',
    engine: (engine) => {
      const reads: { group: number; context: Uint8Array }[] = [];
      return altered(engine, {
        readIndex: (group, context) => void reads.push({ group, context: context.slice() }),
        readyAll(maxBytes) {
          const readies = engine.readyAll(maxBytes);
          for (const { group, context } of reads.splice(0)) {
            const { commit: index } = engine.status(group);
            const ready = readies.find((one) => one.group === group)?.ready;
            const state = { index, context };
            if (ready && !(ready instanceof Error)) ready.reads.push(state);
            else readies.push({ group, ready: { ...emptyReady(), reads: [state] } });
          }
          return readies;
        },
      });
    },
  },
  {
    ...none,
    name: 'a read joins a question that is under way',
    read(group, then) {
      const under = joined.get(group);
      if (under) return void under.push(then);
      const all = [then];
      joined.set(group, all);
      group.readBarrier((isSafe) => {
        joined.delete(group);
        for (const one of all) one(isSafe);
      });
    },
  },
  {
    ...none,
    name: 'the applied index is kept apart from the state',
    machine: (machine) =>
      altered(machine, {
        get durableIndex() {
          return machine.durableIndex > 3 ? machine.durableIndex - 1 : machine.durableIndex;
        },
      }),
  },
  {
    ...none,
    name: 'a snapshot misses what was applied last',
    machine: (machine) => {
      let before = machine.exportState(0) as ExportedState;
      let now = before;
      return altered(machine, {
        apply(index, proposals, position) {
          before = now;
          const done = machine.apply(index, proposals, position);
          now = machine.exportState(0) as ExportedState;
          return done;
        },
        exportState: () => ({ index: now.index, chunks: before.chunks }),
      });
    },
  },
  {
    ...none,
    name: 'a snapshot is not made durable',
    machine: (machine) => {
      let isLying = false;
      return altered(machine, {
        get durableIndex() {
          return machine.durableIndex;
        },
        async install(state) {
          isLying = true;
          void machine.install(state);
          await new Promise(setImmediate);
        },
        checkpoint: () => (isLying ? undefined : machine.checkpoint()),
      });
    },
  },
  {
    ...none,
    name: 'an answer to a read of an earlier life is taken for one of this',
    engine: (engine) => {
      let life = new Uint8Array(16);
      return altered(engine, {
        readIndex(group, context) {
          life = context.slice(0, 16);
          engine.readIndex(group, context);
        },
        readyAll: (maxBytes) =>
          withReads(engine.readyAll(maxBytes), (read) => read.context.set(life)),
      });
    },
  },
  {
    ...none,
    name: 'a read does not wait for the state',
    engine: (engine) =>
      altered(engine, {
        readyAll: (maxBytes) =>
          withReads(engine.readyAll(maxBytes), (read) => {
            read.index = 1;
          }),
      }),
  },
  {
    ...none,
    name: 'its own copy counts before it is on disk',
    engine: (engine) =>
      altered(engine, {
        readyAll(maxBytes) {
          const readies = engine.readyAll(maxBytes);
          for (const { group, ready } of readies) {
            if (ready instanceof Error) continue;
            for (const { type, responses } of ready.messages) {
              if (type !== MessageType.storageAppend) continue;
              for (const own of responses) {
                const isAnswer = own.type === MessageType.appendResponse;
                if (isAnswer && own.to === own.from) engine.stepLocal(group, own);
              }
            }
          }
          return readies;
        },
      }),
  },
  {
    ...none,
    name: 'one entry too many counts as committed at a restart',
    engine: recreated(({ hard, snapshot, entries }) => {
      const last = entries?.at(-1)?.index ?? snapshot.index;
      return { hard: { ...hard!, commit: Math.min(hard!.commit + 1, last) } };
    }),
  },
  {
    ...none,
    name: 'learners come back as voters',
    engine: recreated(({ snapshot }) => {
      const { voters, learners } = snapshot.conf;
      const conf = { ...snapshot.conf, voters: [...voters, ...learners], learners: [] };
      return { snapshot: { ...snapshot, conf } };
    }),
  },
  {
    ...none,
    name: 'the state counts as durable before it is',
    machine: (machine) => {
      const inner = machine as SimulatedMachine;
      return altered(machine, {
        get durableIndex() {
          return machine.durableIndex;
        },
        checkpoint: () => inner.onDurable(inner.index),
      });
    },
  },
  {
    ...none,
    name: 'every other sync does nothing',
    disk: (disk) => {
      let syncs = 0;
      return altered(disk, {
        open(path, mode) {
          const file = disk.open(path, mode);
          if (!path.includes('/seg-')) return file;
          return altered(file, {
            sync: () => (syncs++ % 2 === 0 ? file.sync() : Promise.resolve()),
          });
        },
      });
    },
  },
  {
    ...none,
    name: 'the names of segments are never synced',
    disk: (disk) =>
      altered(disk, {
        syncDirectory: () => undefined,
        open(path, mode) {
          const file = disk.open(path, mode);
          if (path !== '/log') return file;
          return altered(file, { sync: () => Promise.resolve() });
        },
      }),
  },
  {
    ...none,
    name: 'a snapshot forgets members',
    engine: received((message) => {
      const { snapshot } = message;
      if (snapshot === undefined) return message;
      const conf = { ...snapshot.conf, voters: [message.to] };
      return { ...message, snapshot: { ...snapshot, conf } };
    }),
  },
  {
    ...none,
    name: 'a snapshot has the term before its own',
    engine: received((message) => {
      const { snapshot } = message;
      if (snapshot === undefined || snapshot.term < 2) return message;
      return { ...message, snapshot: { ...snapshot, term: snapshot.term - 1 } };
    }),
  },
  {
    ...none,
    name: 'an append is answered for more than it holds',
    engine: received((message) => {
      if (message.type !== MessageType.appendResponse || message.reject) return message;
      return { ...message, index: message.index + 1 };
    }),
  },
  {
    ...none,
    name: 'a vote that is refused counts',
    engine: received((message) =>
      message.type === MessageType.voteResponse ? { ...message, reject: false } : message,
    ),
  },
  {
    ...none,
    name: 'a voter keeps to no lease',
    engine: (engine) =>
      altered(engine, {
        step(group, message) {
          const { type } = message;
          const isVote = type === MessageType.preVote || type === MessageType.vote;
          if (isVote) engine.forgetLeader(group);
          engine.step(group, message);
        },
      }),
  },
  {
    ...none,
    name: 'a voter that is started again campaigns at once, whatever it has promised',
    engine: (engine) => {
      const opened: number[] = [];
      return altered(engine, {
        create(options) {
          const handle = engine.create(options);
          opened.push(handle);
          return handle;
        },
        tickAll() {
          for (const handle of opened.splice(0)) engine.campaign(handle);
          return engine.tickAll();
        },
      });
    },
  },
  {
    ...none,
    name: 'a replica that has lost the end of its log votes without a fence',
    disk: (disk) =>
      altered(disk, { exists: (path) => path !== '/log/fences' && disk.exists(path) }),
  },
  {
    ...none,
    name: 'votes of fenced replicas count like others',
    sent(message) {
      if (message.type === FencedType.vote) return { ...message, type: MessageType.voteResponse };
      if (message.type !== FencedType.preVote) return message;
      return { ...message, type: MessageType.preVoteResponse };
    },
  },
  {
    ...none,
    name: 'a change of members comes before what the engine was to be told',
    engine: (engine) => {
      const told: { group: number; entries: Uint8Array[] }[] = [];
      return altered(engine, {
        propose: (group, entries) =>
          void told.push({ group, entries: entries.map((one) => one.slice()) }),
        hasReady: (group) => told.length > 0 || engine.hasReady(group),
        readyAll(maxBytes) {
          for (const { group, entries } of told.splice(0)) {
            try {
              engine.propose(group, entries);
            } catch (error) {
              // As where there is no leader any more: nothing was proposed.
              if (!(error instanceof RaftError)) throw error;
            }
          }
          return engine.readyAll(maxBytes);
        },
      });
    },
  },
  {
    ...none,
    name: 'some changes of members are not applied',
    engine: (engine) =>
      altered(engine, {
        applyConfChange(group, entry) {
          const { conf } = engine.progress(group);
          return entry.index % 2 === 0 ? conf : engine.applyConfChange(group, entry);
        },
      }),
  },
];

function withReads(readies: GroupReady[], change: (read: ReadState) => void): GroupReady[] {
  for (const { ready } of readies) if (!(ready instanceof Error)) ready.reads.forEach(change);
  return readies;
}

/** The engine with a change to its received messages. */
function received(change: (message: Message) => Message): Defect['engine'] {
  return (engine) =>
    altered(engine, { step: (group, message) => engine.step(group, change(message)) });
}

function emptyReady() {
  return {
    soft: undefined,
    hard: undefined,
    snapshot: undefined,
    mustSync: false,
    entries: [],
    committed: [],
    messages: [],
    reads: [],
  };
}
