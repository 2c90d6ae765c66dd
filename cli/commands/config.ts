import type { Command } from 'commander';
import { configurationDocs } from '../config/docs.ts';

export function configCommand(program: Command): void {
  const config = program.command('config').description('About the settings.');
  config
    .command('docs')
    .description('Print docs/configuration.md.')
    .action(() => {
      process.stdout.write(configurationDocs());
    });
}
