// Makes a table of costs: starts servers of its own on this machine, measures them, and tries the table out.

import { arch, cpus, totalmem } from 'node:os';
import {
  type CostModel,
  type CostTableData,
  type ModelCosts,
  tableFormat,
} from '../../request-units/cost-table.ts';
import { rowCosts, seriesCosts } from '../../request-units/physical.ts';
import { InfluxLoad } from './influx-load.ts';
import type { Progress } from './progress.ts';
import type { Quality } from './quality.ts';
import { RedisLoad } from './redis-load.ts';
import { checkpointMicros, measureDisk, measureRows } from './row-costs.ts';
import { RowTrial } from './row-trial.ts';
import { byTheByte, fillSeries, measureSeries, microsPerLoggedByte } from './series-costs.ts';
import { SeriesTrial } from './series-trial.ts';
import { ServerProcess } from './server-process.ts';

const quiet = ['--log.level', 'error'];

interface Loads {
  server: ServerProcess;
  load: RedisLoad;
  influx: InfluxLoad;
}

/** A server of our own, for as long as `run` takes. */
async function onServer<T>(
  flags: readonly string[],
  run: (loads: Loads) => Promise<T>,
  prepare?: { flags: readonly string[]; run: (loads: Loads) => Promise<void> },
): Promise<T> {
  const server = await ServerProcess.start([...quiet, ...(prepare?.flags ?? flags)]);
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

async function withLoads<T>(server: ServerProcess, run: (loads: Loads) => Promise<T>): Promise<T> {
  const load = await RedisLoad.connect(server.redisPort);
  const influx = new InfluxLoad(server.influxPort);
  try {
    return await run({ server, load, influx });
  } finally {
    influx.close();
    load.close();
  }
}

async function memoryModel(progress: Progress): Promise<ModelCosts> {
  return await onServer(undisturbed, async ({ load }) => {
    const cpu = await measureRows(load, progress);
    return rowCosts({ ...cpu, checkpoint: await checkpointMicros(load, progress) }, false);
  });
}

/** Checkpoints are rare, and what is measured stays in the cache. */
const undisturbed = ['--wal.checkpoint-bytes', '2gb', '--kv.cache-bytes', '1gb'];
/** Rows beyond this are on disk alone. */
const smallCache = ['--kv.cache-bytes', '1mb'];

async function kvModel(progress: Progress): Promise<ModelCosts> {
  const kv = ['--redis.default-model', 'kv'];
  const inCache = [...kv, ...undisturbed];
  const cpu = await onServer(inCache, async ({ load }) => await measureRows(load, progress));
  return await onServer([...kv, ...smallCache], async ({ load }) => {
    const disk = await measureDisk(load, progress, cpu);
    return rowCosts({ ...cpu, ...disk }, true);
  });
}

/** All that is written stays in memory; all that is written becomes files at once. */
const largeHead = ['--tsm.head-bytes', '1gb', '--wal.checkpoint-bytes', '64gb'];
const smallHead = ['--tsm.head-bytes', '1mb'];

/** What queries read is in files, as all but the newest points are. */
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

/** A minute or two. */
export async function measureTable(release: string, progress: Progress): Promise<CostTableData> {
  return {
    format: tableFormat,
    release,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    models: {
      memory: await models.memory(progress),
      kv: await models.kv(progress),
      series: await models.series(progress),
    },
  };
}

function machine(): string {
  const all = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${all.length} x ${all[0]?.model.trim() ?? arch()}, ${memory} GiB, Node ${process.version}`;
}

export type TableQuality = Record<CostModel, Quality>;

type Try = (path: string, table: CostTableData, progress: Progress) => Promise<Quality>;

const rowsOf =
  (model: 'memory' | 'kv'): Try =>
  async (path, { models: { memory, [model]: own } }, progress) =>
    await onServer(
      ['--ru.table', path, ...undisturbed, '--redis.default-model', model],
      async ({ load, server }) =>
        // What is not about rows is charged by the table of those in memory.
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
  progress: Progress,
): Promise<TableQuality> {
  return {
    memory: await tries.memory(path, table, progress),
    kv: await tries.kv(path, table, progress),
    series: await tries.series(path, table, progress),
  };
}
