// Checkpoint from which an import resumes: a small file beside its source, or at a given path.

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { ExitError } from '../../server/lifecycle/exit-error.ts';

/** Settings that must be the same for an import to resume. */
interface Identity {
  source: string;
  target: string;
  databases: string;
}

export class StateFile<Progress> {
  readonly path: string;
  readonly #identity: Identity;

  constructor(path: string, identity: Identity) {
    this.path = path;
    this.#identity = identity;
  }

  /** How far it was; undefined when it begins. Throws when the file is of another import. */
  load(): Progress | undefined {
    if (!existsSync(this.path)) return undefined;
    let found: Identity & { progress: Progress };
    try {
      found = JSON.parse(readFileSync(this.path, 'utf8'));
    } catch {
      throw new ExitError(`${this.path} is no state of an import: remove it to begin anew`);
    }
    for (const name of ['source', 'target', 'databases'] as const) {
      if (found[name] === this.#identity[name]) continue;
      throw new ExitError(
        `${this.path} is of an import of ${found.source} to ${found.target}, databases ${found.databases}: remove it to begin anew, or name another with --state`,
      );
    }
    return found.progress;
  }

  save(progress: Progress): void {
    const next = `${this.path}.tmp`;
    writeFileSync(next, JSON.stringify({ ...this.#identity, progress }), { mode: 0o600 });
    renameSync(next, this.path);
  }

  remove(): void {
    rmSync(this.path, { force: true });
  }
}
