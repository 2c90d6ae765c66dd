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
  const [out, err] = [capture(process.stdout), capture(process.stderr)];
  try {
    // It answers every failure by an exit code.
    const code = await runProgram(words, noPlanes);
    return { code, out: out.text, err: err.text };
  } finally {
    out.end();
    err.end();
  }
}

/** What is written to a stream goes into `text` until `end`. */
function capture(stream: NodeJS.WriteStream): { text: string; end: () => void } {
  const before = Object.getOwnPropertyDescriptor(stream, 'write');
  const captured = {
    text: '',
    end: () => {
      if (before === undefined) Reflect.deleteProperty(stream, 'write');
      else Object.defineProperty(stream, 'write', before);
    },
  };
  stream.write = (text: string | Uint8Array): boolean => {
    captured.text += typeof text === 'string' ? text : Buffer.from(text).toString();
    return true;
  };
  return captured;
}
