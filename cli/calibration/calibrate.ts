// Makes a table of costs: starts servers of its own on this machine, measures them, and tries the table out.

import { arch, cpus, totalmem } from 'node:os';
import {
  type CostModel,
  type CostTableData,
  type ModelCosts,
  tableFormat,
} from '../../request-units/cost-table.ts';
import { rowCosts, seriesCosts } from '../../request-units/physical.ts';
import { OwnServer } from '../own-server.ts';
import type { Columns, Sample } from './cost-fit.ts';
import { InfluxLoad } from './influx-load.ts';
import type { Progress } from './progress.ts';
import type { Quality } from './quality.ts';
import { type PricedRequest, RedisLoad } from './redis-load.ts';
import {
  checkpointMicros,
  measureDisk,
  rowColumns,
  sampleRows,
  scriptMicros,
} from './row-costs.ts';
import { RowTrial } from './row-trial.ts';
import { byTheByte, fillSeries, measureSeries, microsPerLoggedByte } from './series-costs.ts';
import { SeriesTrial } from './series-trial.ts';

const quiet = ['--log.level', 'error'];

interface Loads {
  server: OwnServer;
  load: RedisLoad;
  influx: InfluxLoad;
}

/** A server of our own, for as long as `run` takes. */
async function onServer<T>(
  flags: readonly string[],
  run: (loads: Loads) => Promise<T>,
  prepare?: { flags: readonly string[]; run: (loads: Loads) => Promise<void> },
): Promise<T> {
  const server = await OwnServer.start({
    purpose: 'calibrate',
    flags: [...quiet, ...(prepare?.flags ?? flags)],
    endsOnSignals: true,
  });
  try {
    if (prepare !== undefined) {
      await withLoads(server, prepare.run);
      await server.restart([...quiet, ...flags]);
    }
    return await withLoads(server, run);
  } finally {
    await server.stop();
  }
}

async function withLoads<T>(server: OwnServer, run: (loads: Loads) => Promise<T>): Promise<T> {
  const load = await RedisLoad.connect(server.portOf('redis'));
  const influx = new InfluxLoad(server.portOf('influx'));
  try {
    return await run({ server, load, influx });
  } finally {
    influx.close();
    load.close();
  }
}

/**
 * Servers compile their code differently, so the costs of one differ a little from those of the
 * next.
 */
const sampledServers = 3;

async function rowColumnsOf(flags: readonly string[], progress: Progress): Promise<Columns> {
  const samples: Sample<PricedRequest>[] = [];
  for (let i = 0; i < sampledServers; i++) {
    samples.push(...(await onServer(flags, async ({ load }) => await sampleRows(load, progress))));
  }
  return rowColumns(samples);
}

async function memoryModel(progress: Progress): Promise<ModelCosts> {
  const cpu = await rowColumnsOf(undisturbed, progress);
  return await onServer(undisturbed, async ({ load }) =>
    rowCosts(
      {
        ...cpu,
        checkpoint: await checkpointMicros(load, progress),
        script: await scriptMicros(load, progress),
      },
      false,
    ),
  );
}

/**
 * Checkpoints and compaction are rare, because they are charged apart from requests. The rows that are measured stay
 * in the cache.
 */
const undisturbed = [
  ...['--wal.checkpoint-bytes', '2gb'],
  ...['--kv.cache-bytes', '1gb'],
  ...['--kv.write-buffer-bytes', '512mb'],
];
/** Rows beyond this are on disk alone. */
const smallCache = ['--kv.cache-bytes', '1mb'];

async function kvModel(progress: Progress): Promise<ModelCosts> {
  const kv = ['--redis.default-model', 'kv'];
  const inCache = [...kv, ...undisturbed];
  const cpu = await rowColumnsOf(inCache, progress);
  return await onServer([...kv, ...smallCache], async ({ load }) => {
    const disk = await measureDisk(load, progress, cpu);
    return rowCosts({ ...cpu, ...disk, script: await scriptMicros(load, progress) }, true);
  });
}

/** All that is written stays in memory; all that is written becomes files at once. */
const largeHead = ['--tsm.head-bytes', '1gb', '--wal.checkpoint-bytes', '64gb'];
const smallHead = ['--tsm.head-bytes', '1mb'];

/** Queries read points from files, as all but the newest points are there. */
const filled = {
  flags: ['--wal.checkpoint-bytes', '1mb'],
  run: async ({ influx }: Loads): Promise<void> => await fillSeries(influx),
};

async function seriesModel(progress: Progress): Promise<ModelCosts> {
  const cpu = await onServer(
    largeHead,
    async ({ influx, load }) => await measureSeries(influx, load, progress),
    filled,
  );
  const perByte = async (flags: string[]): Promise<number> =>
    await onServer(
      flags,
      async ({ influx, load }) => await microsPerLoggedByte(influx, load, progress),
    );
  const inMemory = await perByte(largeHead);
  const inFiles = await perByte(smallHead);
  return seriesCosts({ ...cpu, compact: byTheByte(Math.max(0, inFiles - inMemory)) });
}

/** How each model is measured. */
export const models: Readonly<Record<CostModel, (progress: Progress) => Promise<ModelCosts>>> = {
  memory: memoryModel,
  kv: kvModel,
  series: seriesModel,
};

export const modelNames = ['memory', 'kv', 'series'] as const satisfies readonly CostModel[];

/** A minute or two for each of the models. `others` is the table that the rest is taken from. */
export async function measureTable(
  release: string,
  measured: readonly CostModel[],
  others: CostTableData,
  progress: Progress,
): Promise<CostTableData> {
  const found = { ...others.models };
  for (const model of measured) found[model] = await models[model](progress);
  return {
    format: tableFormat,
    release,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    models: found,
  };
}

function machine(): string {
  const all = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${all.length} x ${all[0]?.model.trim() ?? arch()}, ${memory} GiB, Node ${process.version}`;
}

/** Fit quality of the models that were measured. */
export type TableQuality = Partial<Record<CostModel, Quality>>;

type Try = (path: string, table: CostTableData, progress: Progress) => Promise<Quality>;

const rowsOf =
  (model: 'memory' | 'kv'): Try =>
  async (path, { models: { memory, [model]: own } }, progress) =>
    await onServer(
      ['--ru.table', path, ...undisturbed, '--redis.default-model', model],
      async ({ load, server }) =>
        // Work that is not about rows is priced by the memory model's table.
        await new RowTrial(
          load,
          server.pid,
          { rows: own.read1kB[0], other: memory.read1kB[0] },
          progress,
        ).run(),
    );

/** How each model of a table in a file is tried, on a server that charges by it. */
export const tries: Readonly<Record<CostModel, Try>> = {
  memory: rowsOf('memory'),
  kv: rowsOf('kv'),
  series: async (path, { models: { series } }, progress) =>
    await onServer(
      ['--ru.table', path, ...largeHead],
      async ({ influx, load, server }) =>
        await new SeriesTrial(influx, load, server, series.read1kB[0], progress).run(),
      filled,
    ),
};

export async function tryTable(
  path: string,
  table: CostTableData,
  tried: readonly CostModel[],
  progress: Progress,
): Promise<TableQuality> {
  const quality: TableQuality = {};
  for (const model of tried) quality[model] = await tries[model](path, table, progress);
  return quality;
}
