// The command of one connection that partitions with ceilings have admitted, until they are charged for it.

import type { Arguments } from '../../../universal-row/arguments.ts';
import type { TableSpan } from '../../../universal-row/command.ts';
import { hashSlot } from '../../../universal-row/crc16.ts';
import type { PartitionRequest } from '../../../contracts/partition-admission.ts';
import { keyWords } from '../commands/key-words.ts';
import type { CommandEntry } from '../commands/registry.ts';

interface RequestedCommand {
  readonly entry: CommandEntry;
  readonly args: Arguments;
}

export class PartitionTicket {
  /** The command was admitted and is not charged yet. */
  isOpen = false;
  readonly #request: PartitionRequest;

  constructor(request: PartitionRequest) {
    this.#request = request;
  }

  /**
   * Begins the commands of one request, whose first table is `table`. Returns the milliseconds until there is room; 0
   * if there is room now.
   */
  begin(
    commands: readonly RequestedCommand[],
    table: number,
    span: TableSpan,
    now: number,
  ): number {
    this.isOpen = true;
    this.#request.begin();
    let on = table;
    for (const { entry, args } of commands) {
      if (entry.spec.name === 'select') on = selected(args, span) ?? on;
      else if (entry.run !== undefined) this.#touch(entry, args, on, now);
    }
    return this.#request.waitMs(now);
  }

  #touch({ spec }: CommandEntry, args: Arguments, table: number, now: number): void {
    for (const word of keyWords(spec, args)) {
      // As many keys as it says there are.
      if (word >= args.count) break;
      const slot = hashSlot(args.buf, args.starts[word]!, args.lens[word]!);
      this.#request.touch(table, slot, now);
    }
  }

  /** Charges the command that ran. */
  charge(units: number, now: number): void {
    this.isOpen = false;
    this.#request.charge(units, now);
  }

  /** Ends the ticket without a charge. */
  end(): void {
    this.isOpen = false;
  }
}

/** The table that SELECT takes a transaction to, if it does. */
export function selected(args: Arguments, { first, count }: TableSpan): number | undefined {
  const database = args.integerOrNaN(1);
  return database >= 0 && database < count ? first + database : undefined;
}
