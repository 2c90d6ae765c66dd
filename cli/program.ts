// The `polyrow` command and its subcommands.

import { Command, CommanderError } from 'commander';
import { commandsCommand } from './commands/commands.ts';
import { configCommand } from './commands/config.ts';
import { startCommand } from './commands/start.ts';
import { tableCommand } from './commands/table.ts';
import { versionCommand } from './commands/version.ts';
import { ConfigError } from './config/resolve.ts';
import { didYouMean } from './config/suggest.ts';
import { ExitError } from './lifecycle/exit-error.ts';
import type { Planes } from './planes/plane-host.ts';
import { packageVersion } from './version.ts';

function buildProgram(planes: Planes): Command {
  const program = new Command('polyrow')
    .description('A multi-model NoSQL database server for Redis and InfluxDB clients.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .exitOverride();
  startCommand(program, planes);
  tableCommand(program);
  configCommand(program);
  commandsCommand(program);
  versionCommand(program);
  for (const command of everyCommand(program)) command.exitOverride();
  return program;
}

function everyCommand(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...everyCommand(child)]);
}

/** Runs it and resolves to its exit code; 0 also when a server has been started, which goes on. */
export async function runProgram(words: string[], planes: Planes): Promise<number> {
  const program = buildProgram(planes);
  try {
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

/** Says what went wrong, on standard error; the exit code. */
function report(error: unknown): number {
  // It has printed its message, or the help asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof ConfigError) {
    for (const problem of error.problems) process.stderr.write(`polyrow: ${problem}\n`);
    return 2;
  }
  if (error instanceof ExitError) {
    process.stderr.write(`polyrow: ${error.message}\n`);
    return error.exitCode;
  }
  const { code, stack, message } = error as NodeJS.ErrnoException;
  // The operating system's refusals (no space, no permission) speak for themselves; the rest are bugs.
  process.stderr.write(`polyrow: ${code === undefined ? (stack ?? String(error)) : message}\n`);
  return 1;
}
