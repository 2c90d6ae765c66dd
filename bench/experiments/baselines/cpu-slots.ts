// How many pieces of work a pod has under way at a time. A piece holds a slot from its start to its end, its waits
// included, so the right number of slots depends on how much of it is waiting: it follows the lag of the event loop.
// Too many pieces that want the processor in one turn make the turn long, and everyone late (CockroachDB's admission
// control, the slots of its CPU queue).

export interface CpuSlotsOptions {
  /** Without it there is always a slot. */
  enabled: boolean;
  /** Processors that the work may use; a pod has one. */
  cores: number;
  /** Slots a core: at the start, at least and at most. */
  startPerCore: number;
  minPerCore: number;
  maxPerCore: number;
  /** A lag beyond it takes a slot away; one under half of it adds one if all were in use. */
  lagMs: number;
}

export const cpuSlotsDefaults: CpuSlotsOptions = {
  enabled: true,
  cores: 1,
  startPerCore: 4,
  minPerCore: 1,
  maxPerCore: 16,
  lagMs: 2,
};

export class CpuSlots {
  readonly #enabled: boolean;
  readonly #least: number;
  readonly #most: number;
  readonly #lagMs: number;
  #slots: number;
  #used = 0;
  /** All were in use at some time since the last adjustment. */
  #wasExhausted = false;

  constructor(options: Partial<CpuSlotsOptions> = {}) {
    const all = { ...cpuSlotsDefaults, ...options };
    const { enabled, cores, startPerCore, minPerCore, maxPerCore, lagMs } = all;
    this.#enabled = enabled;
    this.#least = Math.max(1, Math.round(cores * minPerCore));
    this.#most = Math.max(this.#least, Math.round(cores * maxPerCore));
    this.#slots = Math.min(this.#most, Math.max(this.#least, Math.round(cores * startPerCore)));
    this.#lagMs = lagMs;
  }

  get slots(): number {
    return this.#slots;
  }

  /** May be above `slots` for a while after these have become fewer. */
  get used(): number {
    return this.#used;
  }

  /** A slot for a piece of work that begins now, if there is one. */
  take(): boolean {
    if (this.#used >= this.#slots && this.#enabled) {
      this.#wasExhausted = true;
      return false;
    }
    this.#used++;
    if (this.#used >= this.#slots) this.#wasExhausted = true;
    return true;
  }

  /** For a piece of work that goes on, whether there is a slot for it or not. */
  takeAnyway(): void {
    this.#used++;
    if (this.#used >= this.#slots) this.#wasExhausted = true;
  }

  /** That piece of work is done. */
  free(): void {
    if (this.#used === 0) throw new RangeError('a slot that nobody holds');
    this.#used--;
  }

  /** To be called every 1 to 10 ms, with how late the event loop was since the last time, at worst. */
  adjust(lagMs: number): void {
    if (lagMs > this.#lagMs) {
      if (this.#slots > this.#least) this.#slots--;
    } else if (lagMs < this.#lagMs / 2 && this.#wasExhausted) {
      if (this.#slots < this.#most) this.#slots++;
    }
    this.#wasExhausted = this.#used >= this.#slots;
  }
}
