// A state machine for tests on a real disk: registers by name. A proposal is `name=value`; a checkpoint is a file that
// is replaced whole.

import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import type { Disk } from '../../../universal-row/environment.ts';
import type { ExportedState, StateMachine } from './state-machine.ts';

interface Saved {
  index: number;
  registers: [string, string][];
}

const registersInChunk = 100;

export class RegisterMachine implements StateMachine {
  durableIndex: number;
  /** The state is durable up to there; for the group. */
  onDurable: (index: number) => void = () => undefined;
  registers: Map<string, string>;
  index: number;
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #name: string;
  #isSaving = false;

  constructor(disk: Disk, directory: string, name: string) {
    this.#disk = disk;
    this.#directory = directory;
    this.#name = name;
    makeDurableDirectory(disk, directory);
    const saved = this.#load() ?? { index: 0, registers: [] };
    this.durableIndex = saved.index;
    this.index = saved.index;
    this.registers = new Map(saved.registers);
  }

  apply(index: number, proposals: readonly Uint8Array[]): void {
    if (index !== this.index + 1 && this.index > 0)
      throw new Error(`${this.#name}: ${index} after ${this.index}`);
    this.index = index;
    for (const proposal of proposals) {
      const text = Buffer.from(proposal).toString();
      const at = text.indexOf('=');
      this.registers.set(text.slice(0, at), text.slice(at + 1));
    }
  }

  exportState(): ExportedState {
    const registers = [...this.registers];
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < registers.length; at += registersInChunk) {
        yield Buffer.from(JSON.stringify(registers.slice(at, at + registersInChunk)));
        await Promise.resolve();
      }
    }
    return { index: this.index, chunks: chunks() };
  }

  async install({ index, chunks }: ExportedState): Promise<void> {
    const registers: [string, string][] = [];
    for await (const chunk of chunks) {
      registers.push(...(JSON.parse(Buffer.from(chunk).toString()) as [string, string][]));
    }
    await this.#save({ index, registers });
    this.registers = new Map(registers);
    this.index = index;
    this.durableIndex = index;
  }

  checkpoint(): void {
    if (this.#isSaving) return;
    this.#isSaving = true;
    const saved: Saved = { index: this.index, registers: [...this.registers] };
    this.#save(saved).then(
      () => {
        this.#isSaving = false;
        this.durableIndex = Math.max(this.durableIndex, saved.index);
        this.onDurable(saved.index);
      },
      (error: unknown) => {
        throw error;
      },
    );
  }

  get #path(): string {
    return `${this.#directory}/${this.#name}`;
  }

  #load(): Saved | undefined {
    if (!this.#disk.exists(this.#path)) return undefined;
    const file = this.#disk.open(this.#path, 'read');
    const b = Buffer.alloc(file.size());
    file.read(b, 0, b.length, 0);
    file.close();
    return JSON.parse(b.toString()) as Saved;
  }

  async #save(saved: Saved): Promise<void> {
    const bytes = Buffer.from(JSON.stringify(saved));
    const file = this.#disk.open(`${this.#path}.new`, 'create');
    try {
      file.write(bytes, 0, bytes.length, 0);
      await file.sync();
    } finally {
      file.close();
    }
    this.#disk.rename(`${this.#path}.new`, this.#path);
    this.#disk.syncDirectory(this.#directory);
  }
}
