// The engines of time series that the tests of this folder run over.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { SeriesSubject } from '../../engines/series-conformance/trial.ts';
import { TsmEngine, type TsmEngineOptions } from '../../engines/tsm/tsm-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { ToySeriesEngine } from './series-toy-engine.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-series-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let directories = 0;
const newDirectory = (): string => join(root, `${++directories}`);

export const seriesToy: SeriesSubject = {
  model: 'toy',
  create: (directory) => new ToySeriesEngine(directory),
  newDirectory,
};

export function tsmWith(options: Partial<TsmEngineOptions>): SeriesSubject {
  return {
    model: 'tsm',
    create: (directory) => new TsmEngine({ directory, disk: realDisk, ...options }),
    newDirectory,
  };
}
