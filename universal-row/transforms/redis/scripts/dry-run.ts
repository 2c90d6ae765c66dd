// Dry runs: a script runs as it would, all that it changes is undone, and the answer tells of the run.

import type { Reply } from '../../../reply.ts';
import { RowWork } from '../../../row-work.ts';

/** Before the name of a command that calls scripts, as in `dry-run|evalsha`: its dry run. */
export const dryRunPrefix = 'dry-run|';

/** A run that was undone. */
export interface DryRun {
  /** The error that it ended with; empty where there was none. */
  failure: string;
  /** Bytes of its answer, in the form of the protocol that its pod writes. */
  sent: number;
  /** Commands that it called. */
  calls: number;
  /** Messages that it would have published. */
  messages: number;
  /** Log records that it would have written, and the rows that they are about. */
  writes: number;
  rows: number;
  /** All that the run did, its log records included. */
  readonly work: RowWork;
}

const figures = ['sent', 'calls', 'messages', 'writes', 'rows'] as const;
const workNames = Object.keys(new RowWork()) as (keyof RowWork & keyof WorkFigures)[];
type WorkFigures = {
  [Name in keyof RowWork as RowWork[Name] extends number ? Name : never]: number;
};

/** Answers an array: the figures, the counters of the work, the text of the error. */
export function answerDryRun(run: DryRun, reply: Reply): void {
  reply.array(figures.length + workNames.length + 1);
  for (const name of figures) reply.integer(run[name]);
  for (const name of workNames) reply.integer(run.work[name]);
  const text = Buffer.from(run.failure, 'latin1');
  reply.bulk(text, 0, text.length);
}

/** Reads an answer of `answerDryRun` as RESP has it; undefined for an error in its place. */
export function readDryRun(answer: string): DryRun | undefined {
  if (!answer.startsWith('*')) return undefined;
  const lines = answer.split('\r\n');
  const numbers = lines.slice(1).map((line) => Number(line.slice(1)));
  const work = new RowWork();
  workNames.forEach((name, i) => (work[name] = numbers[figures.length + i]!));
  const [sent = 0, calls = 0, messages = 0, writes = 0, rows = 0] = numbers;
  // The last line is the one after the end.
  return { failure: lines.at(-2)!, sent, calls, messages, writes, rows, work };
}
