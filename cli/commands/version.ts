import type { Command } from 'commander';
import { packageVersion } from '../../server/version.ts';

export function versionCommand(program: Command): void {
  program
    .command('version')
    .description('Print the version.')
    .option('--json', 'answer in JSON')
    .action((flags: { json?: true }) => {
      const version = packageVersion();
      const text = flags.json ? JSON.stringify({ version, node: process.version }) : version;
      process.stdout.write(`${text}\n`);
    });
}
