// A node's control plane of its own process, for tests that kill it. Its parent sends
// `MemberRequest`s and receives `MemberAnswer`s. Its one argument is JSON of
// `MemberProcessOptions`.

import { MetadataUnavailable, RevisionConflict } from '../../control/metadata/document-store.ts';
import type { ClusterMetadata } from './cluster-metadata.ts';
import { openClusterMetadata } from './open-cluster-metadata.ts';

export interface MemberProcessOptions {
  directory: string;
  /** 0 for a free one, which the `ready` answer tells. */
  port: number;
  begin: 'form' | 'join';
  seeds: string[];
}

/** `count` adds one to the counter `name` by comparing and setting; `get` reads it. */
export type MemberRequest = { id: number; kind: 'count' | 'get' | 'leader'; name: string };

export type MemberAnswer =
  | { kind: 'ready'; port: number; node: number }
  /** `refused`: nothing was done. */
  | { kind: 'answer'; id: number; value: number | 'conflict' | 'refused' | 'unknown' };

const host = '127.0.0.1';
const options = JSON.parse(process.argv[2]!) as MemberProcessOptions;
const answer = (message: MemberAnswer): void => void process.send!(message);

async function serve({ store, leader }: ClusterMetadata, request: MemberRequest): Promise<number> {
  const { kind, name } = request;
  if (kind === 'leader') return leader;
  const found = await store.get('counters', name);
  const value = Number(found?.body ?? 0);
  if (kind === 'get') return value;
  const expected = found?.revision ?? 0;
  await store.write([{ collection: 'counters', id: name, body: value + 1, expected }]);
  return value + 1;
}

function outcomeOf(error: unknown): 'conflict' | 'refused' | 'unknown' {
  if (error instanceof RevisionConflict) return 'conflict';
  if (!(error instanceof MetadataUnavailable)) throw error;
  return error.outcome === 'none' ? 'refused' : 'unknown';
}

const { directory, port, begin, seeds } = options;
const meta = await openClusterMetadata({
  ...{ directory, begin, seeds, zone: '', secret: Buffer.from('of this test only') },
  listen: { host, port },
  addresses: (control) => {
    const none = { redis: '', influx: '', redisClients: '', influxClients: '', admin: '' };
    return { control: `${host}:${control}`, ...none };
  },
  onFatal(error) {
    process.stderr.write(`${String(error.stack)}\n`);
    process.exit(1);
  },
  report: () => undefined,
});
process.on('message', (request: MemberRequest) => {
  const { id } = request;
  serve(meta, request)
    .catch(outcomeOf)
    .then(
      (value) => answer({ kind: 'answer', id, value }),
      (error: Error) => {
        process.stderr.write(`${String(error.stack)}\n`);
        process.exit(1);
      },
    );
});
process.on('disconnect', () => process.exit(0));
answer({ kind: 'ready', port: meta.port, node: meta.identity.node });
