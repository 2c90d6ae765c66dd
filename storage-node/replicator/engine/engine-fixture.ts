// For tests: a few engines with one replica each of one group, and messages between them by hand.

import { EntryKind } from './frames.ts';
import type { ConfState, Entry, Message, Ready } from './frames.ts';
import { RaftError, Role } from './raft-engine.ts';
import type { GroupOptions, RaftEngine } from './raft-engine.ts';
import { loadEngineModule, WasmRaftEngine } from './wasm-engine.ts';

const module = loadEngineModule();

/** Clock and random numbers repeat: two engines of one seed do the same. */
export function seededEngine(
  seed: number,
  log?: (level: number, text: string) => void,
): RaftEngine {
  let state = seed >>> 0;
  let now = 0n;
  return new WasmRaftEngine(module, {
    now: () => (now += 1000n),
    random(bytes) {
      for (let i = 0; i < bytes.length; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        bytes[i] = state >>> 24;
      }
    },
    ...(log && { log }),
  });
}

export interface Node {
  id: number;
  engine: RaftEngine;
  group: number;
  down: boolean;
  applied: Entry[];
  reads: string[];
  conf: ConfState | undefined;
  snapshots: number;
  trace: string[];
}

export function firstSnapshot(voters: readonly number[]): GroupOptions['snapshot'] {
  return {
    index: 1,
    term: 1,
    conf: { voters: [...voters], learners: [], outgoing: [], nextLearners: [], autoLeave: false },
    data: new Uint8Array(0),
  };
}

export class EngineCluster {
  readonly nodes: Node[];
  readonly #asyncStorage: boolean;
  #inFlight: Message[] = [];

  constructor(ids: readonly number[], voters: readonly number[], asyncStorage: boolean) {
    this.#asyncStorage = asyncStorage;
    this.nodes = ids.map((id) => {
      const engine = seededEngine(id * 7919);
      const group = engine.create({
        id,
        electionTicks: 10,
        heartbeatTicks: 1,
        preVote: true,
        checkQuorum: true,
        asyncStorage,
        stepDownOnRemoval: true,
        snapshot: firstSnapshot(voters),
      });
      const rest = { down: false, applied: [], reads: [], conf: undefined, snapshots: 0 };
      return { id, engine, group, ...rest, trace: [] };
    });
  }

  node(id: number): Node {
    return this.nodes.find((node) => node.id === id)!;
  }

  get leader(): Node | undefined {
    return this.nodes.find(
      ({ down, engine, group }) => !down && engine.status(group).role === Role.leader,
    );
  }

  tick(times: number): void {
    for (; times > 0; times--) {
      for (const node of this.nodes) if (!node.down) node.engine.tick(node.group);
      this.settle();
    }
  }

  settle(): void {
    for (const node of this.nodes) if (!node.down) this.#drain(node);
    for (let m = this.#inFlight.shift(); m !== undefined; m = this.#inFlight.shift()) {
      const node = this.nodes.find(({ id }) => id === m!.to);
      if (node === undefined || node.down) continue;
      try {
        node.engine.step(node.group, m);
      } catch (error) {
        // The library rejects messages of an unknown replica: they count as lost.
        if (!(error instanceof RaftError && error.message.includes('peer not found'))) throw error;
      }
      this.#drain(node);
    }
  }

  #drain(node: Node): void {
    for (;;) {
      const ready = node.engine.ready(node.group);
      if (ready === undefined) return;
      node.trace.push(JSON.stringify(ready));
      this.#act(node, ready);
    }
  }

  #act(node: Node, ready: Ready): void {
    if (ready.snapshot) node.snapshots++;
    for (const entry of ready.committed) {
      node.applied.push(entry);
      if (entry.kind !== EntryKind.normal) {
        node.conf = node.engine.applyConfChange(node.group, entry);
      }
    }
    for (const { context } of ready.reads) node.reads.push(Buffer.from(context).toString());
    for (const message of ready.messages) {
      if (message.to < 1000) this.#inFlight.push(message);
    }
    if (!this.#asyncStorage) {
      node.engine.advance(node.group);
      return;
    }
    const { pendingAppends, pendingApplies } = node.engine.status(node.group);
    for (let i = 0; i < pendingAppends; i++) {
      this.#inFlight.push(...node.engine.storageDone(node.group, 'append'));
    }
    for (let i = 0; i < pendingApplies; i++) node.engine.storageDone(node.group, 'apply');
  }
}
