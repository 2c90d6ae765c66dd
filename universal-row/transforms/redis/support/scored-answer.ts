// Members of sorted sets on their way to an answer.

import type { Reply } from '../../../reply.ts';

/** The header of an array of members, or of members and scores: flat in RESP2, pairs in RESP3. */
export function answerScoredHeader(reply: Reply, count: number, withScores: boolean): void {
  reply.array(withScores && reply.version < 3 ? count * 2 : count);
}

/** A member, and its score if asked for, under such a header. */
export function answerScored(
  reply: Reply,
  withScores: boolean,
  b: Buffer,
  s: number,
  n: number,
  score: number,
): void {
  if (withScores && reply.version > 2) reply.array(2);
  reply.bulk(b, s, n);
  if (withScores) reply.double(score);
}
