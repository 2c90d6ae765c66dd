import { Argument, type Command } from 'commander';
import { completionScript, type Shell, shells } from '../output/completion.ts';

export function completionCommand(program: Command): void {
  program
    .command('completion')
    .description('Print a script by which a shell completes commands and flags.')
    .addArgument(new Argument('<shell>', 'which shell').choices([...shells]))
    .action((shell: Shell) => {
      process.stdout.write(completionScript(program, shell));
    });
}
