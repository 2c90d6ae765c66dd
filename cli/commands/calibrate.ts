import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { packageVersion } from '../version.ts';

export function calibrateCommand(program: Command): void {
  program
    .command('calibrate')
    .description('Measure what requests cost on this machine, and print the table of costs.')
    .option('--out <file>', 'write the table there, for the setting ru.table')
    .option('--typescript', 'as the source of the table that comes with a release')
    .option('--no-check', 'do not try the table out')
    .option('--json', 'the quality of the table in JSON')
    .action(async (options: { out?: string; typescript?: true; check: boolean; json?: true }) => {
      const { measureTable, tryTable } = await import('../calibration/calibrate.ts');
      const { lineProgress } = await import('../calibration/progress.ts');
      const { printQuality, tableSource } = await import('../calibration/report.ts');
      const progress = lineProgress(process.stderr);
      const table = await measureTable(packageVersion(), progress);
      const text = options.typescript ? tableSource(table) : `${JSON.stringify(table)}\n`;
      if (options.out === undefined) process.stdout.write(text);
      else writeFileSync(options.out, text);
      if (!options.check) {
        progress.end();
        return;
      }
      const directory = mkdtempSync(join(tmpdir(), 'polyrow-table-'));
      try {
        const path = join(directory, 'table.json');
        writeFileSync(path, JSON.stringify(table));
        const quality = await tryTable(path, table, progress);
        progress.end();
        const shown = options.json ? `${JSON.stringify(quality)}\n` : printQuality(quality);
        // The table may be on standard output.
        (options.out === undefined ? process.stderr : process.stdout).write(shown);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    });
}
