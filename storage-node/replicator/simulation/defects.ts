// Planted bugs: each is a mistake that a driver of this engine could make, put in at a seam. The simulator must find
// every one of them.

import type { Disk, DiskFile } from '../../../universal-row/environment.ts';
import { MessageType } from '../engine/frames.ts';
import type { Message } from '../engine/frames.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import type { RaftGroup } from '../raft/raft-group.ts';
import type { RaftPod } from '../raft/raft-pod.ts';
import type { StateMachine } from '../raft/state-machine.ts';

export interface Defect {
  name: string;
  disk(disk: Disk): Disk;
  engine(engine: RaftEngine): RaftEngine;
  machine(machine: StateMachine): StateMachine;
  /** The end of a node's event-loop tick. */
  work(pod: RaftPod, group: RaftGroup): boolean;
}

const none: Defect = {
  name: 'none',
  disk: (disk) => disk,
  engine: (engine) => engine,
  machine: (machine) => machine,
  work: (pod) => pod.work(),
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

/** The engine with what it is created from changed. */
function recreated(
  change: (options: Parameters<RaftEngine['create']>[0]) => Partial<typeof options>,
): Defect['engine'] {
  return (engine) =>
    altered(engine, {
      create: (options) => engine.create({ ...options, ...change(options) }),
    });
}

/** Lets what waits for the disk go at once. */
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
    name: 'the applied index is kept apart from the state',
    machine: (machine) => {
      let stored = machine.durable;
      return altered(machine, {
        get durable() {
          return stored.index > 3 ? { ...stored, index: stored.index - 1 } : stored;
        },
        checkpoint(at, done) {
          stored = at;
          machine.checkpoint(at, done);
        },
      });
    },
  },
  {
    ...none,
    name: 'a snapshot misses what was applied last',
    machine: (machine) => {
      let before = machine.exportState();
      let now = before;
      return altered(machine, {
        apply(index, proposals) {
          before = now;
          machine.apply(index, proposals);
          now = machine.exportState();
        },
        exportState: () => before,
      });
    },
  },
  {
    ...none,
    name: 'a snapshot is not made durable',
    machine: (machine) =>
      altered(machine, {
        checkpoint: (at, done) => {
          Object.assign(machine, { durable: at });
          done();
        },
      }),
  },
];

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
