// Cost of the consensus engine: processor time (all threads of the process) of a ready cycle of a
// group of three (propose, send, answer, commit, apply) without disk or network, and of a round of
// heartbeats of many groups. The last row of cycles is the driver's load: one entry a tick, a
// reference of 32 bytes.

import { MessageType } from '../storage-node/replicator/engine/frames.ts';
import type { Message } from '../storage-node/replicator/engine/frames.ts';
import { loadEngineModule, WasmRaftEngine } from '../storage-node/replicator/engine/wasm-engine.ts';
import { machine, printTable, type Report, type Row, save } from './support/report.ts';
import { median } from './support/statistics.ts';

export const raftBenchDefaults = { rounds: 3, seconds: 2, groups: 1000 };

const shapes = [
  { entries: 1, bytes: 100 },
  { entries: 10, bytes: 100 },
  { entries: 100, bytes: 100 },
  { entries: 1, bytes: 10_000 },
  { entries: 1, bytes: 32 },
];
const keptEntries = 2000;

/** One replica of each group, and its cost so far. */
class Replica {
  readonly engine: WasmRaftEngine;
  readonly groups: number[] = [];
  micros = 0;

  constructor(module: ConstructorParameters<typeof WasmRaftEngine>[0], id: number, groups: number) {
    this.engine = new WasmRaftEngine(module);
    const conf = { voters: [1, 2, 3], learners: [], outgoing: [], nextLearners: [] };
    for (let i = 0; i < groups; i++) {
      this.groups.push(
        this.engine.create({
          id,
          electionTicks: 100,
          heartbeatTicks: 1,
          asyncStorage: true,
          noForwarding: true,
          snapshot: {
            index: 1,
            term: 1,
            conf: { ...conf, autoLeave: false },
            data: new Uint8Array(0),
          },
        }),
      );
    }
  }

  /** Processes the engine's output as if the disk took no time; returns the messages to send. */
  drain(): { group: number; message: Message }[] {
    const mail: { group: number; message: Message }[] = [];
    for (;;) {
      const readies = this.engine.readyAll(1 << 20);
      if (readies.length === 0) return mail;
      for (const { group, ready } of readies) {
        if (ready instanceof Error) throw ready;
        for (const message of ready.messages) {
          if (message.type === MessageType.storageAppend) {
            const sent = this.engine.storageDone(group, 'append');
            for (const answer of sent) mail.push({ group, message: answer });
          } else if (message.type === MessageType.storageApply) {
            this.engine.storageDone(group, 'apply');
          } else mail.push({ group, message });
        }
      }
    }
  }

  timed<T>(run: () => T): T {
    const before = performance.now();
    try {
      return run();
    } finally {
      this.micros += (performance.now() - before) * 1000;
    }
  }
}

class Cluster {
  readonly replicas: Replica[];
  #mail: { group: number; message: Message }[] = [];

  constructor(module: ConstructorParameters<typeof WasmRaftEngine>[0], groups: number) {
    // Groups have the same numbers on all, as they are made in the same order.
    this.replicas = [1, 2, 3].map((id) => new Replica(module, id, groups));
    const [leader] = this.replicas;
    for (const group of leader!.groups) leader!.engine.campaign(group);
    this.settle();
  }

  get leader(): Replica {
    return this.replicas[0]!;
  }

  settle(): void {
    for (const replica of this.replicas) {
      this.#mail.push(...replica.timed(() => replica.drain()));
    }
    while (this.#mail.length > 0) {
      const mail = this.#mail.splice(0);
      for (const [i, replica] of this.replicas.entries()) {
        const own = mail.filter(({ message }) => message.to === i + 1);
        if (own.length === 0) continue;
        const sent = replica.timed(() => {
          replica.engine.stepAll(own);
          return replica.drain();
        });
        this.#mail.push(...sent);
      }
    }
  }

  compact(): void {
    for (const { engine, groups } of this.replicas) {
      for (const group of groups) {
        const { applied, firstIndex, term } = engine.status(group);
        if (applied - firstIndex < keptEntries * 2) continue;
        const { conf } = engine.progress(group);
        engine.setSnapshot(group, { index: applied, term, conf, data: new Uint8Array(0) });
        engine.compact(group, applied - keptEntries);
      }
    }
  }
}

/** Microseconds of a cycle at the leader and at a follower. */
function measureCycles(
  cluster: Cluster,
  shape: (typeof shapes)[number],
  seconds: number,
): { leader: number; follower: number } {
  const entries = Array.from({ length: shape.entries }, () => new Uint8Array(shape.bytes));
  const { leader, replicas } = cluster;
  const group = leader.groups[0]!;
  for (const replica of replicas) replica.micros = 0;
  let cycles = 0;
  const before = process.cpuUsage();
  for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
    for (let i = 0; i < 20; i++, cycles++) {
      leader.timed(() => leader.engine.propose(group, entries));
      cluster.settle();
    }
    cluster.compact();
  }
  // Wall time gives only the shares of the replicas. The total is processor time, without other processes.
  const all = replicas.reduce((sum, { micros }) => sum + micros, 0);
  const cycle = processorMicros(before) / cycles;
  const leaderShare = leader.micros / all;
  return { leader: cycle * leaderShare, follower: (cycle * (1 - leaderShare)) / 2 };
}

/** Milliseconds in which the replicas of many groups, all three together, tick and exchange heartbeats. */
function measureHeartbeats(cluster: Cluster, seconds: number): number {
  let rounds = 0;
  const before = process.cpuUsage();
  for (const end = performance.now() + seconds * 1000; performance.now() < end; rounds++) {
    for (const { engine } of cluster.replicas) engine.tickAll();
    cluster.settle();
  }
  return processorMicros(before) / 1000 / rounds;
}

function processorMicros(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return user + system;
}

function row(name: string, unit: string, ours: number): Row {
  return { name, unit, ours, peer: NaN, ratio: NaN, better: 'lower' };
}

export function raftBench(options: typeof raftBenchDefaults, command: string): Report {
  const { rounds, seconds, groups } = options;
  const module = loadEngineModule();
  const rows: Row[] = [];
  for (const shape of shapes) {
    const cluster = new Cluster(module, 1);
    measureCycles(cluster, shape, Math.min(1, seconds));
    const all = Array.from({ length: rounds }, () => measureCycles(cluster, shape, seconds));
    const name = `${shape.entries} x ${shape.bytes} B`;
    rows.push(row(`${name}, leader`, 'us/cycle', median(all.map(({ leader }) => leader))));
    rows.push(row(`${name}, follower`, 'us/cycle', median(all.map(({ follower }) => follower))));
  }
  const many = new Cluster(module, groups);
  const beats = Array.from({ length: rounds }, () => measureHeartbeats(many, seconds));
  rows.push(row(`${groups} groups x 3, a round of heartbeats`, 'ms', median(beats)));
  const { system } = many.leader.engine.memory();
  rows.push(row(`${groups} groups, memory of an instance`, 'MB', system / 1e6));
  const report: Report = {
    bench: 'raft',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: '-',
    rounds,
    settings: { secondsOfARound: seconds, groups },
    rows,
  };
  printTable(report);
  save(report, 'raft');
  return report;
}
