// Identity of a node, in a file of its data directory: generated once, and kept until the node is
// removed from the cluster.

import { randomBytes, randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeDurably } from '../lifecycle/data-directory.ts';
import { ExitError } from '../lifecycle/exit-error.ts';
import type { NodeIdentity } from './cluster-metadata.ts';

/** Another node as it was last known. */
export interface KnownPeer {
  node: number;
  /** `HOST:PORT` of its control plane. */
  control: string;
}

interface IdentityRecord extends NodeIdentity {
  format: number;
  /** Identifies a joining node to the cluster if it asks again before it knows its number. */
  joinId: string;
  /** The cluster is being formed: its first documents are perhaps not all there. */
  isForming: boolean;
  /** For a start at which the copy of the metadata does not have them yet. */
  peers: readonly KnownPeer[];
}

const formatVersion = 1;
const fileName = 'identity';
export const maxNodes = 2 ** 20;

/** The directory of the cluster's files in a data directory. */
export function clusterDirectory(dataDirectory: string): string {
  return join(dataDirectory, 'cluster');
}

/**
 * Identity in a data directory of a cluster node; undefined for any other one. Throws `ExitError`
 * for a damaged file.
 */
export function readNodeIdentity(dataDirectory: string): NodeIdentity | undefined {
  const record = read(clusterDirectory(dataDirectory));
  return record === undefined || record.node === 0 ? undefined : record;
}

export class IdentityFile {
  readonly #directory: string;
  #record: IdentityRecord;

  private constructor(directory: string, record: IdentityRecord) {
    this.#directory = directory;
    this.#record = record;
  }

  /** Opens the identity file of a data directory. Throws `ExitError` for a damaged file. */
  static open(dataDirectory: string): IdentityFile {
    const directory = clusterDirectory(dataDirectory);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const found = read(directory);
    if (found) return new IdentityFile(directory, found);
    const file = new IdentityFile(directory, {
      ...{ format: formatVersion, cluster: 0, node: 0, incarnation: 0 },
      ...{ joinId: randomBytes(16).toString('hex'), isForming: false, peers: [] },
    });
    // The identity used to join must be the same after a crash.
    file.#save({});
    return file;
  }

  get record(): Readonly<IdentityRecord> {
    return this.#record;
  }

  get isMember(): boolean {
    return this.#record.node !== 0;
  }

  /** Makes the node the first one of a new cluster. */
  form(): void {
    this.#save({ cluster: randomInt(1, 2 ** 32), node: 1, isForming: true });
  }

  formed(): void {
    this.#save({ isForming: false });
  }

  joined(cluster: number, node: number, peers: readonly KnownPeer[]): void {
    this.#save({ cluster, node, peers });
  }

  /** The node starts once more: its number is of a new life. */
  begin(): NodeIdentity {
    this.#save({ incarnation: this.#record.incarnation + 1 });
    const { cluster, node, incarnation } = this.#record;
    return { cluster, node, incarnation };
  }

  setPeers(peers: readonly KnownPeer[]): void {
    if (JSON.stringify(peers) !== JSON.stringify(this.#record.peers)) this.#save({ peers });
  }

  #save(changes: Partial<IdentityRecord>): void {
    const record = { ...this.#record, ...changes };
    writeDurably(this.#directory, fileName, `${JSON.stringify(record)}\n`);
    this.#record = record;
  }
}

function read(directory: string): IdentityRecord | undefined {
  const path = join(directory, fileName);
  if (!existsSync(path)) return undefined;
  const damaged = new ExitError(
    `${path} is damaged: it should say which node of a cluster this is`,
  );
  let record: IdentityRecord;
  try {
    record = JSON.parse(readFileSync(path, 'utf8')) as IdentityRecord;
  } catch {
    throw damaged;
  }
  const { format, cluster, node, incarnation, joinId, peers } = record;
  if (format > formatVersion) {
    throw new ExitError(`${path} was written by a newer Polyrow: start that version`);
  }
  const areNumbers = [format, cluster, node, incarnation].every(Number.isSafeInteger);
  if (!areNumbers || typeof joinId !== 'string' || !Array.isArray(peers)) throw damaged;
  return record;
}
