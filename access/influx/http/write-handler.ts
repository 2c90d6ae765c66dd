// /write and /api/v2/write.

import {
  ReadOnlyError,
  SeriesError,
  type SeriesStore,
  UnavailableError,
} from '../../../contracts/series-store.ts';
import type { QuotaMode } from '../../../contracts/table-properties.ts';
import { expectWritable } from '../statements/read-only.ts';
import type { Caller } from '../tenants/caller.ts';
import { bucketNotFound, bucketTarget } from './bucket-routes.ts';
import type { GatewayStage } from '../admission/gateway-stage.ts';
import type { PodStage } from '../admission/pod-stage.ts';
import type { Exchange } from './exchange.ts';
import { HttpError } from './http-error.ts';
import type { InfluxCounters } from './influx-metrics.ts';
import type { PointWriter, WriteReport, WriteTarget } from './point-writer.ts';
import type { BodyLimits } from './request-body.ts';

interface WriteHandlerOptions {
  points: PointWriter;
  counters: InfluxCounters;
  body: BodyLimits;
  /** The admission stages; absent where there are no limits, and where every request runs at once. */
  gateway?: GatewayStage | undefined;
  pod?: PodStage | undefined;
}

const consistencies = new Set(['', 'any', 'one', 'quorum', 'all']);
const v2Precisions = new Set(['', 'ns', 'us', 'ms', 's']);

export class WriteHandler {
  readonly #options: WriteHandlerOptions;

  constructor(options: WriteHandlerOptions) {
    this.#options = options;
  }

  async v1(exchange: Exchange, caller: Caller): Promise<void> {
    const { parameters } = exchange;
    const { store } = caller.space;
    const database = parameters.get('db');
    const retentionPolicy = parameters.get('rp');
    if (database === '') throw new HttpError(400, 'database is required');
    if (store.database(database) === undefined) throw databaseNotFound(database);
    expectMayWrite(caller, database, exchange.isV2);
    if (!consistencies.has(parameters.get('consistency').toLowerCase())) {
      throw new HttpError(400, 'invalid consistency level');
    }
    if (!hasPolicy(store, database, retentionPolicy)) {
      throw new HttpError(500, `retention policy not found: ${retentionPolicy}`);
    }
    const precision = parameters.get('precision');
    await this.#write(exchange, caller, { database, retentionPolicy, precision });
  }

  async v2(exchange: Exchange, caller: Caller): Promise<void> {
    const { parameters } = exchange;
    const { store } = caller.space;
    const bucket = parameters.get('bucket');
    const precision = parameters.get('precision');
    if (bucket === '') throw new HttpError(400, 'bucket is required');
    if (!v2Precisions.has(precision)) {
      throw new HttpError(400, 'invalid precision; valid precision units are ns, us, ms, and s');
    }
    const { database, retentionPolicy } = bucketTarget(bucket);
    const isKnown =
      store.database(database) !== undefined && hasPolicy(store, database, retentionPolicy);
    if (!isKnown) throw bucketNotFound(bucket);
    expectMayWrite(caller, database, exchange.isV2);
    await this.#write(exchange, caller, { database, retentionPolicy, precision });
  }

  async #write(
    exchange: Exchange,
    caller: Caller,
    named: Pick<WriteTarget, 'database' | 'retentionPolicy' | 'precision'>,
  ): Promise<void> {
    const target: WriteTarget = {
      ...named,
      tenant: caller.space.number,
      store: caller.space.store,
      check: () => expectMayWrite(caller, named.database, exchange.isV2),
      work: exchange.work,
      memory: exchange.memory,
      receivedAt: exchange.receivedAt,
      identity: exchange.identity,
      given: () => void (exchange.isGiven = true),
    };
    const { points, counters, body: limits, gateway, pod } = this.#options;
    try {
      expectWritable(target.store, target.database);
    } catch (error) {
      this.#fail(error, target, exchange);
    }
    const atGateway = gateway?.admitWrite(exchange, target.tenant, () => quotaModeOf(target));
    if (atGateway !== undefined) await atGateway;
    const atPod = pod?.admitWrite(exchange, target.database);
    if (atPod !== undefined) await atPod;
    target.waitedMs = exchange.waitedMs;
    const body = await exchange.body(limits);
    const report = await points
      .write(target, body.whole ?? body.pieces, exchange.isV2)
      .catch((error: unknown) => this.#fail(error, target, exchange));
    counters.writeSeconds.observe((performance.now() - exchange.startedAt) / 1000);
    const failure = failureOf(report, exchange.isV2);
    if (failure === undefined) exchange.reply(204);
    else exchange.fail(failure);
  }

  /** A database may have been dropped while its points came. */
  #fail(error: unknown, { store, database }: WriteTarget, exchange: Exchange): never {
    // The refusal is not charged; points stored before it are.
    if (error instanceof ReadOnlyError) exchange.isRefused = exchange.work.points === 0;
    if (error instanceof UnavailableError) throw error;
    if (error instanceof SeriesError && store.database(database) === undefined) {
      throw exchange.isV2 ? bucketNotFound(database) : databaseNotFound(database);
    }
    throw error;
  }
}

/** Asked at any time while the write waits: the replica may have left this node meanwhile. */
function quotaModeOf({ store, database }: WriteTarget): QuotaMode {
  try {
    return store.database(database)?.quotaMode ?? 'server';
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return 'server';
  }
}

function hasPolicy(store: SeriesStore, database: string, name: string): boolean {
  const policies = store.database(database)?.retentionPolicies;
  return name === '' || policies?.some((policy) => policy.name === name) === true;
}

function expectMayWrite({ principal }: Caller, database: string, isV2: boolean): void {
  if (principal === undefined || principal.isAdmin || principal.mayWrite(database)) return;
  throw new HttpError(
    403,
    isV2
      ? 'insufficient permissions for write'
      : `"${principal.name}" user is not authorized to write to database "${database}"`,
  );
}

function databaseNotFound(database: string): HttpError {
  return new HttpError(404, `database not found: "${database}"`);
}

/** Valid points are stored even with an error answer; clients do not send them again. */
function failureOf(report: WriteReport, isV2: boolean): HttpError | undefined {
  const { dropped, error, parseErrors, hasGoodLines } = report;
  if (error !== undefined) {
    return new HttpError(isV2 ? 422 : 400, `partial write: ${error} dropped=${dropped}`);
  }
  if (parseErrors === '') return undefined;
  return new HttpError(400, hasGoodLines ? `partial write: ${parseErrors} dropped=0` : parseErrors);
}
