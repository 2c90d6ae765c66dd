// PFSELFTEST: checks that registers keep their values, and that estimates are within bounds, dense
// and sparse alike.

import type { Arguments } from '../../../arguments.ts';
import { CommandError } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import type { Rows } from '../../../rows.ts';
import type { Steps, StepTransform } from '../../../steps.ts';
import { estimateOf } from './estimate.ts';
import { hashed, hashElement, registerCount } from './hash.ts';
import { denseRegister, headerBytes, Sketch } from './sketch.ts';

const mostElements = 100_000;
const elementsPerStep = 1000;
/** Standard deviations that an estimate may be off. */
const deviations = 6;

export function pfselftest(): StepTransform {
  return selfTest;
}

function* selfTest(rows: Rows, _: Arguments, reply: Reply): Steps {
  const dense = new Sketch();
  dense.clear();
  dense.toDense();
  const counts = Uint8Array.from({ length: registerCount }, () => Math.floor(rows.random() * 51));
  counts.forEach((count, i) => dense.raise(i, count));
  yield;
  counts.forEach((count, i) => {
    if (denseRegister(dense.b, headerBytes, i) !== count) throw failed(`Register ${i}`);
  });
  yield* compareEstimates(rows);
  reply.ok();
}

function* compareEstimates(rows: Rows): Steps {
  const dense = new Sketch();
  dense.clear();
  dense.toDense();
  const sparse = new Sketch();
  sparse.clear();
  const element = Buffer.alloc(8);
  element.writeDoubleLE(rows.random());
  for (let n = 1, checkpoint = 1; n <= mostElements; n++) {
    element.writeUInt32LE(n);
    hashElement(element, 0, element.length);
    dense.raise(hashed.index, hashed.count);
    sparse.raise(hashed.index, hashed.count);
    if (n === checkpoint) {
      const estimate = estimateOf(dense.b, 0, dense.length);
      if (estimate !== estimateOf(sparse.b, 0, sparse.length)) throw failed('dense and sparse');
      const error = Math.abs(Number(estimate) - n);
      const most = Math.max(1, Math.ceil((1.04 / Math.sqrt(registerCount)) * deviations * n));
      if (error > most) throw failed(`Too big error. card:${n} abserr:${error}`);
      checkpoint *= 10;
    }
    if (n % elementsPerStep === 0) yield;
  }
}

function failed(what: string): CommandError {
  return new CommandError(`TESTFAILED ${what}`);
}
