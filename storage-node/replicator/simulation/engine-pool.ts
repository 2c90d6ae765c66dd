// Pool of engines for the incarnations of nodes. Instantiating the module takes longer than most
// incarnations: an engine is reused in a later history, its groups destroyed. Never in the same
// history, where promises of the ended incarnation may still call it.

import type { GroupOptions } from '../engine/raft-engine.ts';
import { loadEngineModule, WasmRaftEngine } from '../engine/wasm-engine.ts';
import { Random } from './timeline.ts';

const module = loadEngineModule();

/** Growth of an engine's heap between two collections: histories are short, and memory is cheaper than time. */
const collectorPercent = 1000;

class PooledEngine extends WasmRaftEngine {
  readonly #world: { clock: bigint; random: Random };
  #groups: number[] = [];

  constructor() {
    // Random numbers of a new instance must not depend on which history needs one.
    const world = { clock: 0n, random: new Random(1) };
    super(module, {
      now: () => (world.clock += 1000n),
      random: (bytes) => world.random.bytes(bytes),
    });
    this.#world = world;
    this.setCollectorPercent(collectorPercent);
  }

  override create(options: GroupOptions): number {
    const group = super.create(options);
    this.#groups.push(group);
    return group;
  }

  begin(random: Random): void {
    this.#world.random = random;
  }

  /** Pending Readys are destroyed with the groups. */
  end(): void {
    for (const group of this.#groups.splice(0)) this.destroy(group);
  }
}

const idle: PooledEngine[] = [];

export class EnginePool {
  readonly #used: PooledEngine[] = [];

  take(random: Random): WasmRaftEngine {
    const engine = idle.pop() ?? new PooledEngine();
    engine.begin(random);
    this.#used.push(engine);
    return engine;
  }

  /** The history is over. */
  release(): void {
    for (const engine of this.#used.splice(0)) {
      try {
        engine.end();
        idle.push(engine);
      } catch {
        // A fault of the engine, which the history has met: it serves no other.
      }
    }
  }
}
