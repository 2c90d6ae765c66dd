// Throttle of replica moves (X-Stor, section 5.3.2): a pod takes part in one move at a time, as source or destination, and a
// move copies at most so many bytes a second. The simulator asks it how long a plan takes; an executor asks it which moves
// may begin, and tells it which have ended.

export interface PodMove {
  from: number;
  to: number;
  bytes: number;
}

interface ThrottleParameters {
  /** Moves of a pod at the same time. */
  movesOfPod: number;
  bytesPerSecond: number;
}

export const usualThrottle: ThrottleParameters = { movesOfPod: 1, bytesPerSecond: 50e6 };

export class MoveThrottle {
  readonly #parameters: ThrottleParameters;
  readonly #waiting: PodMove[] = [];
  /** Moves that run, by pod. */
  readonly #running = new Map<number, number>();

  constructor(parameters: ThrottleParameters = usualThrottle) {
    this.#parameters = parameters;
  }

  /** Moves begin in the order in which they are added, but one that must wait does not hold up others. */
  add(move: PodMove): void {
    this.#waiting.push(move);
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Moves that begin now. */
  begin(): PodMove[] {
    const begun: PodMove[] = [];
    // Pods of a move that waits are kept for it, so that later ones do not overtake it on its own pods.
    const kept = new Set<number>();
    for (let i = 0; i < this.#waiting.length; ) {
      const move = this.#waiting[i]!;
      const mayBegin = [move.from, move.to].every(
        (pod) => !kept.has(pod) && (this.#running.get(pod) ?? 0) < this.#parameters.movesOfPod,
      );
      if (mayBegin) {
        this.#waiting.splice(i, 1);
        this.#count(move, 1);
        begun.push(move);
        continue;
      }
      kept.add(move.from).add(move.to);
      i++;
    }
    return begun;
  }

  /** A move that had begun is over, whether it was made or failed. */
  end(move: PodMove): void {
    this.#count(move, -1);
  }

  /** Least time that the copy may take. */
  secondsOf({ bytes }: PodMove): number {
    return bytes / this.#parameters.bytesPerSecond;
  }

  #count({ from, to }: PodMove, by: 1 | -1): void {
    for (const pod of [from, to]) this.#running.set(pod, (this.#running.get(pod) ?? 0) + by);
  }
}

/** Seconds until all moves are made, when each takes as long as its bytes do. */
export function durationOf(moves: readonly PodMove[], parameters = usualThrottle): number {
  const throttle = new MoveThrottle(parameters);
  for (const move of moves) throttle.add(move);
  let now = 0;
  let running: { move: PodMove; endsAt: number }[] = [];
  for (;;) {
    for (const move of throttle.begin()) {
      running.push({ move, endsAt: now + throttle.secondsOf(move) });
    }
    if (running.length === 0) return now;
    now = Math.min(...running.map(({ endsAt }) => endsAt));
    for (const { move, endsAt } of running) if (endsAt <= now) throttle.end(move);
    running = running.filter(({ endsAt }) => endsAt > now);
  }
}
