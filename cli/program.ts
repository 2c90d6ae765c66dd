// The `polyrow` command and its subcommands.

import { Command, CommanderError } from 'commander';
import { startCommand } from './commands/start.ts';
import { ConfigError } from '../server/settings/resolve.ts';
import { didYouMean } from '../server/settings/suggest.ts';
import { ExitError } from '../server/lifecycle/exit-error.ts';
import { printableLines } from './output/values.ts';
import type { Planes } from '../server/planes/plane-host.ts';
import { packageVersion } from '../server/version.ts';

async function buildProgram(words: readonly string[], planes: Planes): Promise<Command> {
  const program = new Command('polyrow')
    .description('A multi-model NoSQL database server for Redis and InfluxDB clients.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, 'polyrow: ')),
    })
    .exitOverride();
  startCommand(program, planes);
  if (!isStart(words)) {
    const { addOperatorCommands } = await import('./commands/operator-commands.ts');
    addOperatorCommands(program);
  }
  for (const command of everyCommand(program)) command.exitOverride();
  return program;
}

/** Help is about all commands, wherever it is asked for. */
function isStart(words: readonly string[]): boolean {
  const [first = ''] = words;
  if (first !== 'start' && first !== '' && !first.startsWith('-')) return false;
  return !words.some((word) => word === '-h' || word === '--help');
}

function everyCommand(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...everyCommand(child)]);
}

/** Runs it and resolves to its exit code; 0 also when a server has been started, which continues. */
export async function runProgram(words: string[], planes: Planes): Promise<number> {
  try {
    const program = await buildProgram(words, planes);
    // Otherwise a mistyped command would be taken for an argument of the default one.
    refuseUnknownCommand(program, words[0]);
    await program.parseAsync(words, { from: 'user' });
    return 0;
  } catch (error) {
    return report(error);
  }
}

function refuseUnknownCommand(program: Command, word: string | undefined): void {
  if (word === undefined || word.startsWith('-')) return;
  const names = ['help', ...program.commands.map((command) => command.name())];
  if (!names.includes(word)) {
    throw new ExitError(
      `there is no command ${word}.${didYouMean(word, names)} See polyrow --help`,
      2,
    );
  }
}

/** Prints the error on standard error; returns the exit code. */
function report(error: unknown): number {
  // Commander has printed its message, or the requested help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof ConfigError) {
    for (const problem of error.problems)
      process.stderr.write(`polyrow: ${printableLines(problem)}\n`);
    return 2;
  }
  if (error instanceof ExitError) {
    process.stderr.write(`polyrow: ${printableLines(error.message)}\n`);
    return error.exitCode;
  }
  const { code, stack, message } = error as NodeJS.ErrnoException;
  // The operating system's refusals (no space, no permission) speak for themselves; the rest are bugs.
  const text = code === undefined ? (stack ?? String(error)) : message;
  process.stderr.write(`polyrow: ${printableLines(text)}\n`);
  return 1;
}
