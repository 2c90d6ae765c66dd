// The least that a log can do, to measure ours against: a tick's ops go to the end of one file in one write.
// No framing, no checksum, no recovery.

import { closeSync, fdatasync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import {
  type FsyncPolicy,
  type LogStatus,
  opsRoomBytes,
  type Outcome,
  type PartitionLog,
} from '../../storage-node/replicator/partition-log.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';

export class BareLog implements PartitionLog {
  readonly mayLose = false;
  readonly role = 'leader';
  readonly writer = new RecordBatchWriter();
  readonly failure: Error | undefined = undefined;
  readonly fsyncPolicy: FsyncPolicy;
  lastIndex = 0;

  private readonly fd: number;
  private readonly timer: NodeJS.Timeout | undefined;
  private size = 0;
  private syncedSize = 0;
  private entryAt = 0;

  constructor(path: string, fsync: FsyncPolicy) {
    this.fd = openSync(path, 'w');
    this.fsyncPolicy = fsync;
    if (fsync === 'everysec') this.timer = setInterval(() => this.#sync(), 1000);
  }

  get writtenBytes(): number {
    return this.size;
  }

  #sync(): void {
    if (this.syncedSize === this.size) return;
    this.syncedSize = this.size;
    fdatasync(this.fd, (error) => {
      if (error) throw error;
    });
  }

  begin(): void {
    this.entryAt = this.writer.pos;
  }

  end(): number {
    return this.writer.pos === this.entryAt ? 0 : ++this.lastIndex;
  }

  adopt(ops: RecordBatchWriter): void {
    this.writer.append(ops, opsRoomBytes);
  }

  abandon(): void {
    this.writer.pos = this.entryAt;
  }

  endTick(): number {
    const { buf, pos } = this.writer;
    if (pos === 0) return -1;
    let written = 0;
    while (written < pos) written += writeSync(this.fd, buf, written, pos - written);
    this.size += pos;
    this.writer.pos = 0;
    if (this.fsyncPolicy === 'always') fdatasyncSync(this.fd);
    return -1;
  }

  whenSettled(_position: number, then: (outcome: Outcome) => void): void {
    then('committed');
  }

  listen(): void {}

  readBarrier(then: (outcome: Outcome) => void): void {
    then('committed');
  }

  transfer(): void {}

  changeMembers(): boolean {
    return false;
  }

  keepAfter = Infinity;

  truncate(): void {
    // Nothing reads this log.
  }

  readBack(): never {
    throw new Error('this log is not read');
  }

  status(): LogStatus {
    return {
      firstIndex: 1,
      lastIndex: this.lastIndex,
      volume: 1,
      appendedLsn: this.size,
      durableLsn: this.syncedSize,
      segments: 1,
      bytes: this.size,
      entries: this.lastIndex,
      frames: 0,
      fsyncs: 0,
      lastFsyncMs: 0,
      maxFsyncMs: 0,
    };
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    // After the fsync that may be under way.
    await new Promise<void>((resolve) => fdatasync(this.fd, () => resolve()));
    closeSync(this.fd);
  }
}
