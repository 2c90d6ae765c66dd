// A position of the log, and the members from there on. For each group the write-ahead log keeps the position before
// its first entry and, while a snapshot is being installed, the position of the snapshot:
//
//   positions = (index u64 | term u64 | conf state)*

import { emptyConf, FrameReader, FrameWriter } from '../engine/frames.ts';
import type { ConfState } from '../engine/frames.ts';
import type { Members } from '../partition-log.ts';

export interface LogPosition {
  index: number;
  term: number;
  conf: ConfState;
}

/** The position that a new group begins at on each of its first members. */
export function firstPosition(voters: readonly number[]): LogPosition {
  return { index: 1, term: 1, conf: { ...emptyConf, voters: [...voters] } };
}

/** Position of a replica that is to join a group. */
export const joiningPosition: LogPosition = { index: 0, term: 0, conf: emptyConf };

export function membersOf({ voters, learners, nextLearners, outgoing }: ConfState): Members {
  return { voters: [...voters], learners: [...learners, ...nextLearners], outgoing: [...outgoing] };
}

export function encodePositions(...positions: readonly LogPosition[]): Uint8Array {
  const writer = new FrameWriter();
  for (const { index, term, conf } of positions) writer.u64(index).u64(term).confState(conf);
  return writer.done().slice();
}

export function decodePositions(bytes: Uint8Array): LogPosition[] {
  const reader = new FrameReader(bytes);
  const positions: LogPosition[] = [];
  while (reader.at < reader.end) {
    positions.push({ index: reader.u64(), term: reader.u64(), conf: reader.confState() });
  }
  return positions;
}

/** The members of a group by index, from the position that its log begins after. */
export class MemberHistory {
  #changes: { index: number; conf: ConfState }[];

  constructor(begin: LogPosition) {
    this.#changes = [{ index: begin.index, conf: begin.conf }];
  }

  get latest(): ConfState {
    return this.#changes.at(-1)!.conf;
  }

  changed(index: number, conf: ConfState): void {
    this.#changes.push({ index, conf });
  }

  at(index: number): ConfState {
    const found = this.#changes.findLast((change) => change.index <= index);
    if (found === undefined) throw new Error(`the members at ${index} are forgotten`);
    return found.conf;
  }

  /** Positions before `index` are not requested any more. */
  forgetBefore(index: number): void {
    const first = this.#changes.findLastIndex((change) => change.index <= index);
    if (first > 0) this.#changes.splice(0, first);
  }
}
