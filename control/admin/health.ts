// Whether the server is fit for traffic, and if not, why.

type ServerPhase = 'starting' | 'running' | 'draining';

export class Health {
  phase: ServerPhase = 'starting';
  /** What a slow start is waiting for. */
  waitsFor = '';
  /** Asks the parts for their problems; each resolves within about a second. */
  readonly #checks: (() => Promise<string[]>)[] = [];

  addCheck(check: () => Promise<string[]>): void {
    this.#checks.push(check);
  }

  /** Why no traffic should come; [] when ready. */
  async problems(): Promise<string[]> {
    if (this.phase === 'starting' && this.waitsFor !== '') return [this.waitsFor];
    if (this.phase !== 'running') return [this.phase];
    const found = await Promise.all(this.#checks.map((check) => check()));
    return found.flat();
  }
}
