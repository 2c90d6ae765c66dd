import type { Command } from 'commander';

export function commandsCommand(program: Command): void {
  const commands = program.command('commands').description('About the Redis commands.');
  commands
    .command('docs')
    .description('Print docs/commands.md.')
    .action(async () => {
      // Loaded only here: the other commands have no need of the whole command table.
      const { commandsDocs } = await import('../docs/redis-commands.ts');
      process.stdout.write(commandsDocs());
    });
}
