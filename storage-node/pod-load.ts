// Work of a replica's commands since the last reading, as this node's share of its group's work:
// the leader has all of it except reads of followers.

import { RowWork } from '../universal-row/row-work.ts';

interface PodWork {
  readonly commands: number;
  /** Bytes of answers. */
  readonly sent: number;
  readonly work: RowWork;
}

export class PodLoad {
  #commands = 0;
  #sent = 0;
  #work = new RowWork();
  readonly #before = new RowWork();

  /** A command begins. Its work is added to `work`, which may contain other work already. */
  begin(work: RowWork): void {
    this.#before.copy(work);
  }

  /** The commands that began last are over, and have answered so many bytes. */
  end(work: RowWork, sent: number, commands = 1): void {
    this.#commands += commands;
    this.#sent += sent;
    this.#work.addSince(this.#before, work);
  }

  /** The last commands are long: returns the work for `endLong` once they are over. */
  beginLong(): RowWork {
    const before = new RowWork();
    before.copy(this.#before);
    return before;
  }

  endLong(before: RowWork, work: RowWork, sent: number): void {
    this.#commands++;
    this.#sent += sent;
    this.#work.addSince(before, work);
  }

  /** A row has to be read from disk, and the commands begin again afterwards. */
  missed(): void {
    this.#work.misses++;
  }

  /** All since the last call. */
  take(): PodWork {
    const taken = { commands: this.#commands, sent: this.#sent, work: this.#work };
    this.#commands = 0;
    this.#sent = 0;
    this.#work = new RowWork();
    return taken;
  }
}
