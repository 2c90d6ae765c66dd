import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import {
  checkCostTable,
  type CostModel,
  type CostTableData,
} from '../../request-units/cost-table.ts';
import { shippedTable } from '../../request-units/pru-table.ts';
import type { TableQuality } from '../calibration/calibrate.ts';
import { packageVersion } from '../../server/version.ts';

export function calibrateCommand(program: Command): void {
  program
    .command('calibrate')
    .description('Measure what requests cost on this machine, and print the table of costs.')
    .option('--out <file>', 'write the table there, for the setting ru.table')
    .option('--typescript', 'in the form of the table that comes with a release')
    .option('--no-check', 'do not test the table')
    .option('--json', 'the quality of the table in JSON')
    .option('--markdown', 'the quality of the table as lines of a table')
    .option(
      '--try <file>',
      'measure nothing, and test the table in a file, or that of the `release`',
    )
    .addOption(
      new Option('--model <model>', 'measure and test this one alone').choices(
        Object.keys(shippedTable.models),
      ),
    )
    .option(
      '--others <file>',
      'with --model: the table that has the others, if not that of the release',
    )
    .action(async (options: CalibrateOptions) => {
      const { measureTable, modelNames, tryTable } = await import('../calibration/calibrate.ts');
      const { lineProgress } = await import('../calibration/progress.ts');
      const { tableSource } = await import('../calibration/report.ts');
      const progress = lineProgress(process.stderr);
      const models = options.model === undefined ? modelNames : [options.model];
      let table: CostTableData;
      if (options.try === undefined) {
        const others = options.others === undefined ? shippedTable : tableIn(options.others);
        table = await measureTable(packageVersion(), models, others, progress);
        const text = options.typescript ? tableSource(table) : `${JSON.stringify(table)}\n`;
        if (options.out === undefined) process.stdout.write(text);
        else writeFileSync(options.out, text);
      } else {
        table = options.try === 'release' ? shippedTable : tableIn(options.try);
      }
      if (options.check) {
        const directory = mkdtempSync(join(tmpdir(), 'polyrow-table-'));
        try {
          const path = join(directory, 'table.json');
          writeFileSync(path, JSON.stringify(table));
          const shown = await shownAs(options, await tryTable(path, table, models, progress));
          progress.end();
          // The table may be on standard output.
          const isFree = options.out !== undefined || options.try !== undefined;
          (isFree ? process.stdout : process.stderr).write(shown);
        } finally {
          rmSync(directory, { recursive: true, force: true });
        }
      }
      progress.end();
    });
}

interface CalibrateOptions {
  out?: string;
  typescript?: true;
  check: boolean;
  json?: true;
  markdown?: true;
  try?: string;
  model?: CostModel;
  others?: string;
}

function tableIn(file: string): CostTableData {
  return checkCostTable(JSON.parse(readFileSync(file, 'utf8')));
}

async function shownAs(options: CalibrateOptions, quality: TableQuality): Promise<string> {
  const { markdownQuality, printQuality } = await import('../calibration/report.ts');
  if (options.json) return `${JSON.stringify(quality)}\n`;
  return options.markdown ? markdownQuality(quality) : printQuality(quality);
}
