// A process of ours that gets half of the processor: it is stopped for every other few milliseconds.

const turnMs = 4;

export class HalfSpeed {
  readonly #pid: number;
  #isStopped = false;
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number) {
    this.#pid = pid;
    this.#timer = setInterval(() => this.#tick(), turnMs);
  }

  #tick(): void {
    this.#isStopped = !this.#isStopped;
    process.kill(this.#pid, this.#isStopped ? 'SIGSTOP' : 'SIGCONT');
  }

  /** Full speed again. */
  end(): void {
    clearInterval(this.#timer);
    if (this.#isStopped) this.#tick();
  }
}
