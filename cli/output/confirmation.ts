// Asks before something is done that cannot be undone.

import { createInterface } from 'node:readline/promises';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { exitCodes } from '../../server/exit-codes.ts';

/** Returns only if the user types the name of the resource to be deleted. */
export async function confirmName(warning: string, name: string): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new ExitError(`${warning} There is no terminal to ask on: say --yes`, exitCodes.usage);
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const typed = await terminal.question(`${warning} Type ${name} to go on: `);
    if (typed.trim() !== name) throw new ExitError('nothing was deleted');
  } finally {
    terminal.close();
  }
}
