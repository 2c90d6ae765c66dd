// The data planes of all nodes of a cluster, as a backup or a restore that one of them makes sees them. Orders go to other
// nodes' planes through their control planes; the files are in a directory of the node that makes it, to which the others
// write, and from which they read.

import { dirname } from 'node:path';
import type { Json } from '../../control/metadata/document-store.ts';
import type { Disk, DiskFile } from '../../universal-row/environment.ts';
import {
  type ChunkAnswer,
  type ChunkRequest,
  mostChunkBytes,
} from '../../storage-node/backup/remote-chunks.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { nodeOfReplica } from '../../storage-node/replicator/raft/replica-id.ts';
import type { ClusterMetadata } from '../cluster/cluster-metadata.ts';
import type { ClusterNode } from '../cluster/cluster-node.ts';
import type { PlaneHost, Planes } from '../planes/plane-host.ts';
import {
  type BackupPlane,
  type BackupPlanes,
  type BackupShare,
  ownPlanes,
  stepTimeoutMs,
} from './plane-orders.ts';

const questions = { order: 'backup/order', chunk: 'backup/chunk' } as const;
const chunkTimeoutMs = 60_000;

type PlaneName = keyof Planes;
type CallName = 'backup' | 'restore' | 'leads';

interface PlaneOrder {
  plane: PlaneName;
  call: CallName;
  argument: Json;
}

interface NodePlane extends BackupPlane {
  readonly name: PlaneName;
  readonly node: number;
}

export class ClusterPlanes implements BackupPlanes {
  readonly #planes: Planes;
  readonly #metadata: ClusterMetadata;
  readonly #node: ClusterNode;
  /** Backups that this node makes or restores, with the number of times each was opened. */
  readonly #open = new Map<string, number>();
  /** Chunks that other nodes write here, by path. */
  readonly #written = new Map<string, DiskFile>();

  readonly #disk: Disk;

  constructor(planes: Planes, metadata: ClusterMetadata, node: ClusterNode, disk: Disk = realDisk) {
    this.#planes = planes;
    this.#metadata = metadata;
    this.#node = node;
    this.#disk = disk;
    const { handlers } = metadata;
    handlers.on(questions.order, async (body) => {
      const { plane, call, argument } = body as unknown as PlaneOrder;
      const host: PlaneHost = planes[plane];
      // Which argument belongs to which call is fixed by `#remote`.
      return (await host.call(call, argument as never, stepTimeoutMs)) as unknown as Json;
    });
    handlers.on(questions.chunk, async (body) => {
      const { bytes, ...request } = body as { bytes?: string } & Record<string, Json>;
      const given = bytes === undefined ? {} : { bytes: Buffer.from(bytes, 'base64') };
      const answer = await this.#here({ ...request, ...given } as unknown as ChunkRequest);
      return asJson(answer);
    });
  }

  all(): BackupPlane[] {
    return this.#nodes().flatMap((node) => this.#planesOf(node));
  }

  #nodes(): number[] {
    return this.#metadata
      .reachability()
      .filter(({ reachable }) => reachable)
      .map(({ node }) => node);
  }

  #planesOf(node: number): NodePlane[] {
    const own = this.#metadata.identity.node;
    if (node === own) {
      return ownPlanes(this.#planes)
        .all()
        .map((plane) => ({ ...plane, name: plane.name as PlaneName, node }));
    }
    return (['redis', 'influx'] as const).map((plane) => this.#remote(node, plane));
  }

  #remote(node: number, plane: PlaneName): NodePlane {
    const ask = async <T>(call: CallName, argument: object): Promise<T> => {
      const order: PlaneOrder = { plane, call, argument: argument as Json };
      const body = order as unknown as Json;
      return (await this.#metadata.ask(node, questions.order, body, stepTimeoutMs)) as T;
    };
    /** The files are here. */
    const from = { node: this.#metadata.identity.node };
    return {
      ...{ name: plane, node },
      backup: (order) => ask('backup', { ...order, ...from }),
      restore: (order) => ask('restore', { ...order, ...from }),
      leads: (scope) => ask('leads', scope),
    };
  }

  /** Each group is taken here if there is a replica here, else where it is led. */
  async shares(tenant: number | undefined): Promise<BackupShare[]> {
    const replicas = await this.#node.replicas();
    const own = this.#metadata.identity.node;
    const shares = new Map<string, { plane: NodePlane; groups: number[] }>();
    for (const { group, model, tenant: owner } of this.#node.view.groups) {
      if (tenant !== undefined && owner !== tenant) continue;
      const able = replicas.filter((one) => one.group === group && one.role !== 'learner');
      const taken =
        able.find(({ replica }) => nodeOfReplica(replica) === own) ??
        able.find(({ role }) => role === 'leader');
      if (taken === undefined) throw new Error(`no replica of group ${group} can be reached`);
      const node = nodeOfReplica(taken.replica);
      const name = model === 'tsm' ? 'influx' : 'redis';
      const key = `${node} ${name}`;
      const plane = this.#planesOf(node).find((one) => one.name === name)!;
      const share = shares.get(key) ?? { plane, groups: [] };
      shares.set(key, share);
      share.groups.push(group);
    }
    return [...shares.values()];
  }

  open(directory: string): () => void {
    this.#open.set(directory, (this.#open.get(directory) ?? 0) + 1);
    return () => {
      const left = this.#open.get(directory)! - 1;
      if (left > 0) return void this.#open.set(directory, left);
      this.#open.delete(directory);
      for (const path of this.#written.keys()) {
        if (dirname(path) === directory) this.#closeWritten(path);
      }
    };
  }

  /** Chunk of a local plane that has a part of another node's backup. */
  async chunk({ node, request }: { node: number; request: ChunkRequest }): Promise<ChunkAnswer> {
    const body = asJson(request);
    const answer = await this.#metadata.ask(node, questions.chunk, body, chunkTimeoutMs);
    const { bytes, ...others } = answer as { bytes?: string; size?: number };
    return bytes === undefined ? others : { ...others, bytes: Buffer.from(bytes, 'base64') };
  }

  async #here(request: ChunkRequest): Promise<ChunkAnswer> {
    const { path } = request;
    if (!this.#open.has(dirname(path))) {
      throw new Error(`${path} is of no backup that is being made or restored here`);
    }
    switch (request.action) {
      case 'size':
        return { size: this.#disk.exists(path) ? this.#read(path, (file) => file.size()) : -1 };
      case 'read': {
        const bytes = Buffer.alloc(Math.min(request.length, mostChunkBytes));
        const n = this.#read(path, (file) => file.read(bytes, 0, bytes.length, request.position));
        return { bytes: bytes.subarray(0, n) };
      }
      case 'write': {
        const { bytes, position } = request;
        if (position === 0) {
          this.#closeWritten(path);
          this.#written.set(path, this.#disk.open(path, 'create'));
        }
        await this.#beingWritten(path).writeAsync(bytes, 0, bytes.length, position);
        return {};
      }
      case 'sync': {
        const file = this.#beingWritten(path);
        try {
          await file.sync();
        } finally {
          if (this.#written.get(path) === file) this.#closeWritten(path);
        }
        return {};
      }
    }
  }

  #read<T>(path: string, use: (file: DiskFile) => T): T {
    const file = this.#disk.open(path, 'read');
    try {
      return use(file);
    } finally {
      file.close();
    }
  }

  /**
   * Kept open from the first piece to the sync: the disk may report that it could not write a piece only to those who have
   * the file open at that time.
   */
  #beingWritten(path: string): DiskFile {
    const file = this.#written.get(path);
    if (file === undefined) throw new Error(`${path} is not being written`);
    return file;
  }

  #closeWritten(path: string): void {
    this.#written.get(path)?.close();
    this.#written.delete(path);
  }
}

function asJson(message: ChunkRequest | ChunkAnswer): Json {
  const { bytes, ...others } = message as { bytes?: Uint8Array };
  const text = bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return { ...others, ...(text === undefined ? {} : { bytes: text.toString('base64') }) } as Json;
}
