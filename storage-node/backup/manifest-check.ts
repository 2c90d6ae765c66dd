// Whether a manifest is one that this program could have written. Its checksum does not tell: a program that makes a
// backup by hand computes it as well. Names of files stay within the directory of the backup.

import { podOf } from './chain.ts';
import type { BackupManifest } from './manifest-content.ts';
import {
  anyText,
  type Check,
  count,
  finite,
  flag,
  integer,
  listOf,
  objectOf,
  oneOf,
  optional,
  ShapeError,
  textLike,
} from './shape.ts';

const backupId = textLike(/^\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}$/, 'the id of a backup');
const chunkName = textLike(/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\.chunk$/, 'the name of a chunk file');

const files = listOf(
  objectOf({
    name: chunkName,
    bytes: count,
    rawBytes: count,
    frames: count,
    sha256: textLike(/^[0-9a-f]{64}$/, 'a SHA-256 in hexadecimal'),
  }),
);

const part = objectOf({
  model: textLike(/^[a-z]{1,20}(-\d{1,2}-of-\d{1,2})?$/, 'the name of an engine'),
  group: optional(count),
  tenant: optional(count),
  kind: oneOf('all', 'entries', 'shards'),
  point: objectOf({ volume: finite, index: count }),
  after: optional(count),
  at: finite,
  reason: optional(anyText),
  files,
  tables: optional(listOf(objectOf({ table: count, rows: count, checksum: optional(anyText) }))),
  shards: optional(
    listOf(
      objectOf({
        shard: count,
        database: anyText,
        policy: anyText,
        startSeconds: integer,
        seconds: count,
        included: flag,
      }),
    ),
  ),
});

const manifest: Check = objectOf({
  id: backupId,
  chain: backupId,
  parent: optional(backupId),
  scope: objectOf({ tenant: optional(objectOf({ name: anyText, number: count })) }),
  program: anyText,
  startedAt: anyText,
  finishedAt: anyText,
  metadata: objectOf({ revision: count, files }),
  parts: listOf(part),
});

/** Throws `ShapeError`. */
export function checkManifest(value: unknown): asserts value is BackupManifest {
  manifest(value, 'manifest');
  const { metadata, parts } = value as BackupManifest;
  refuseTwice('engine', parts.map(podOf));
  const names = [...metadata.files, ...parts.flatMap((one) => one.files)].map(({ name }) => name);
  refuseTwice('file', names);
}

function refuseTwice(what: string, names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) throw new ShapeError(`the ${what} ${name} is there twice`);
    seen.add(name);
  }
}
