// Applies the commands of a source's stream to the target. Each transaction notes in a key of the target how far the
// stream was applied with it, so that a move that is interrupted continues with nothing lost and nothing done twice.

import { RedisError, type Reply, type Word } from './resp-link.ts';
import { nameOf, type Target } from './target.ts';
import type { StreamedCommand } from './command-stream.ts';

const batchCommands = 512;
const batchBytes = 1024 * 1024;

interface Batch {
  db: number;
  commands: Word[][];
  bytes: number;
  /** Offset in the stream after the last command, and the database selected there. */
  offset: number;
  sourceDb: number;
}

export class LiveApply {
  readonly #target: Target;
  readonly #marker: string;
  #sourceDb: number;
  #batch: Batch | undefined;
  #isInTransaction = false;
  #offset: number;
  /** Stream offsets applied, and recorded as applied. */
  applied: number;
  commands = 0;

  constructor(target: Target, marker: string, offset: number, sourceDb: number) {
    this.#target = target;
    this.#marker = marker;
    this.#offset = offset;
    this.applied = offset;
    this.#sourceDb = sourceDb;
  }

  /** Takes a command; applies the collected ones when they are many. */
  async take({ words, bytes }: StreamedCommand): Promise<void> {
    this.#offset += bytes;
    const name = words.length === 0 ? '' : words[0]!.toString('latin1').toUpperCase();
    switch (name) {
      case '':
      case 'PING':
      case 'REPLCONF':
        break;
      case 'SELECT':
        this.#sourceDb = Number(words[1]);
        break;
      case 'MULTI':
        this.#isInTransaction = true;
        break;
      case 'EXEC':
        this.#isInTransaction = false;
        break;
      default:
        await this.#add(name, words, bytes);
    }
    if (this.#isInTransaction) return;
    const batch = this.#batch;
    if (batch === undefined) {
      this.applied = this.#offset;
      return;
    }
    batch.offset = this.#offset;
    batch.sourceDb = this.#sourceDb;
    if (batch.commands.length >= batchCommands || batch.bytes >= batchBytes) await this.flush();
  }

  async #add(name: string, words: Buffer[], bytes: number): Promise<void> {
    for (const { db, command } of this.#mapped(name, words)) {
      if (this.#batch !== undefined && this.#batch.db !== db) {
        // Inside a transaction of the source the whole of it stays together.
        if (this.#isInTransaction) {
          this.#batch.commands.push(['SELECT', String(db)]);
          this.#batch.db = db;
        } else await this.flush();
      }
      this.#batch ??= this.#begin(db);
      this.#batch.commands.push(command);
      this.#batch.bytes += bytes;
    }
  }

  #begin(db: number): Batch {
    const commands: Word[][] = [['SELECT', String(db)]];
    return { db, commands, bytes: 0, offset: this.#offset, sourceDb: this.#sourceDb };
  }

  /** Commands for the target; none for databases that are not imported. */
  #mapped(name: string, words: Buffer[]): { db: number; command: Word[] }[] {
    const { databases } = this.#target;
    if (name === 'FLUSHALL' && !databases.isIdentity) {
      return databases.targets!.map((db) => ({ db, command: ['FLUSHDB'] }));
    }
    const db = databases.of(this.#sourceDb);
    if (name === 'SWAPDB' && !databases.isIdentity) {
      const numbers = words.slice(1).map((word) => databases.of(Number(word)));
      if (numbers.includes(undefined)) return [];
      return [{ db: numbers[0]!, command: [name, ...numbers.map(String)] }];
    }
    if (db === undefined) return [];
    const command: Word[] = [...words];
    const numberAt = name === 'MOVE' ? 2 : name === 'COPY' ? databaseWord(words) : -1;
    if (numberAt > 0 && !databases.isIdentity) {
      const to = databases.of(Number(words[numberAt]));
      if (to === undefined) return name === 'MOVE' ? [{ db, command: ['DEL', words[1]!] }] : [];
      command[numberAt] = String(to);
    }
    return [{ db, command }];
  }

  /**
   * Applies the commands taken, and waits for the result. Not within a transaction of the source,
   * which stays whole.
   */
  async flush(): Promise<void> {
    if (this.#isInTransaction) return;
    const batch = this.#batch;
    this.#batch = undefined;
    if (batch === undefined) return;
    await this.#run(batch.commands, batch);
    this.commands += batch.commands.length - 1;
    this.applied = batch.offset;
  }

  async #run(commands: Word[][], batch: Batch): Promise<void> {
    const { link } = this.#target;
    const { db, offset, sourceDb } = batch;
    const note: Word[] = ['SET', this.#marker, `${offset} ${sourceDb}`];
    const queued: Promise<Reply>[] = [];
    this.#target.forgetDatabase();
    void link.ask(['MULTI']);
    for (const command of [...commands, note]) {
      queued.push(link.ask(command));
    }
    const done = await link.call('EXEC').catch((error: unknown) => error);
    const replies = await Promise.all(queued);
    if (done instanceof RedisError) {
      // Some were refused before they ran, and none has run.
      const kept = commands.filter((command, i) => {
        const reply = replies[i];
        if (reply instanceof RedisError) this.#failed(db, command, reply);
        return !(reply instanceof RedisError);
      });
      if (kept.length === commands.length) throw done;
      return await this.#run(kept, batch);
    }
    if (!Array.isArray(done)) throw done;
    done.forEach((reply: Reply, i) => {
      if (reply instanceof RedisError) this.#failed(db, commands[i] ?? note, reply);
    });
  }

  #failed(db: number, command: Word[], error: RedisError): void {
    const key = Buffer.from(command[1] ?? '');
    this.#target.fail(`${String(command[0])}, ${nameOf(db, key)}`, error);
  }
}

function databaseWord(words: Buffer[]): number {
  return words.findIndex(
    (word, i) => i > 2 && words[i - 1]!.toString().toUpperCase() === 'DB' && word.length > 0,
  );
}
