// A command of the operator's tool in the process of the test: a new process takes a third of a second of a processor before
// it does anything. For tests whose subject is the server; those of the tool itself run the compiled one (polyrow-process.ts).

import { runProgram } from '../../cli/program.ts';
import type { Planes } from '../../server/planes/plane-host.ts';
import type { Finished } from './polyrow-process.ts';

/** No command but `start` uses them. */
const noPlanes = {} as Planes;

// Commands write to the standard streams of the process, so only one runs at a time.
let last: Promise<unknown> = Promise.resolve();

export function polyrowHere(words: string[]): Promise<Finished> {
  const done = last.then(() => run(words));
  last = done;
  return done;
}

async function run(words: string[]): Promise<Finished> {
  const printed = { out: '', err: '' };
  const { stdout, stderr } = process;
  const writes = { out: stdout.write, err: stderr.write };
  const keep = (stream: 'out' | 'err'): typeof stdout.write => {
    return (text: string | Uint8Array): boolean => {
      printed[stream] += typeof text === 'string' ? text : Buffer.from(text).toString();
      return true;
    };
  };
  stdout.write = keep('out');
  stderr.write = keep('err');
  try {
    // It answers every failure by an exit code.
    return { code: await runProgram(words, noPlanes), ...printed };
  } finally {
    stdout.write = writes.out;
    stderr.write = writes.err;
  }
}
