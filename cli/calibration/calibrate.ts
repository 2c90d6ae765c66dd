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
import { MixTrial, type Quality } from './mix.ts';
import type { Progress } from './progress.ts';
import { RedisLoad } from './redis-load.ts';
import { checkpointMicros, missMicros, RowProbe } from './row-costs.ts';
import { SeriesProbe } from './series-costs.ts';
import { SeriesTrial, type SeriesQuality } from './series-mix.ts';
import { ServerProcess } from './server-process.ts';

const quiet = ['--log.level', 'error'];

async function onServer<T>(
  flags: readonly string[],
  run: (load: RedisLoad, server: ServerProcess) => Promise<T>,
): Promise<T> {
  const server = await ServerProcess.start([...quiet, ...flags]);
  try {
    const load = await RedisLoad.connect(server.redisPort);
    try {
      return await run(load, server);
    } finally {
      load.close();
    }
  } finally {
    await server.stop();
  }
}

async function onSeries<T>(
  flags: readonly string[],
  run: (influx: InfluxLoad, load: RedisLoad, server: ServerProcess) => Promise<T>,
): Promise<T> {
  return await onServer(flags, async (load, server) => {
    const influx = new InfluxLoad(server.influxPort, load);
    try {
      return await run(influx, load, server);
    } finally {
      influx.close();
    }
  });
}

async function memoryModel(progress: Progress): Promise<ModelCosts> {
  return await onServer([], async (load) => {
    const cpu = await new RowProbe(load, progress).measure();
    return rowCosts({ ...cpu, checkpoint: await checkpointMicros(load, progress) }, false);
  });
}

/** Rows beyond this are on disk alone. */
const smallCache = ['--kv.cache-bytes', '1mb'];

async function kvModel(progress: Progress): Promise<ModelCosts> {
  const kv = ['--redis.default-model', 'kv'];
  const cpu = await onServer(kv, async (load) => await new RowProbe(load, progress).measure());
  return await onServer([...kv, ...smallCache], async (load) => {
    const miss = await missMicros(load, progress, cpu);
    return rowCosts({ ...cpu, ...miss }, true);
  });
}

const mergedPoints = 200_000;

async function seriesModel(progress: Progress): Promise<ModelCosts> {
  const cpu = await onSeries(
    [],
    async (influx) => await new SeriesProbe(influx, progress).measure(),
  );
  // All that is written stays in memory; all that is written becomes files at once.
  const perByte = async (flags: string[]): Promise<number> =>
    await onSeries(flags, async (influx, load) => {
      const probe = new SeriesProbe(influx, progress);
      return await probe.perLoggedByte(mergedPoints, async (run) => (await load.cpuOf(run)).micros);
    });
  const inMemory = await perByte(['--tsm.head-bytes', '1gb']);
  const inFiles = await perByte(['--tsm.head-bytes', '1mb']);
  const merging = Math.max(0, inFiles - inMemory);
  return seriesCosts({ ...cpu, compact: bySize((size) => size * merging) });
}

function bySize(cost: (size: number) => number): number[] {
  return Array.from({ length: 15 }, (_, i) => cost(64 << i));
}

/** A minute or two. */
export async function measureTable(release: string, progress: Progress): Promise<CostTableData> {
  return {
    format: tableFormat,
    release,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    models: {
      memory: await memoryModel(progress),
      kv: await kvModel(progress),
      series: await seriesModel(progress),
    },
  };
}

function machine(): string {
  const all = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${all.length} x ${all[0]?.model.trim() ?? arch()}, ${memory} GiB, Node ${process.version}`;
}

export interface TableQuality {
  memory: Quality;
  kv: Quality;
  series: SeriesQuality;
}

/** Tries the table in the file out, on servers that charge by it. */
export async function tryTable(
  path: string,
  table: CostTableData,
  progress: Progress,
): Promise<TableQuality> {
  const flags = ['--ru.table', path];
  const micros = (model: CostModel): number => table.models[model].read1kB[0];
  const rows = async (model: 'memory' | 'kv'): Promise<Quality> =>
    await onServer([...flags, '--redis.default-model', model], async (load) =>
      new MixTrial(load, micros(model), progress).run(),
    );
  return {
    memory: await rows('memory'),
    kv: await rows('kv'),
    series: await onSeries(flags, async (influx, load, server) =>
      new SeriesTrial(influx, load, server, micros('series'), progress).run(),
    ),
  };
}
