// Readiness of the server, and the reasons if it is not ready.

type ServerPhase = 'starting' | 'running' | 'draining';

export class Health {
  phase: ServerPhase = 'starting';
  /** Description of the step that a slow start waits for. */
  waitsFor = '';
  /** Asks the parts for their problems; each resolves within about a second. */
  readonly #checks: (() => Promise<string[]>)[] = [];

  addCheck(check: () => Promise<string[]>): void {
    this.#checks.push(check);
  }

  /** Reasons for which the server is not ready; [] when it is ready. */
  async problems(): Promise<string[]> {
    if (this.phase === 'starting' && this.waitsFor !== '') return [this.waitsFor];
    if (this.phase !== 'running') return [this.phase];
    const found = await Promise.all(this.#checks.map((check) => check()));
    return found.flat();
  }
}
