// Host functions of the engine's module: the dozen system calls of WASI that Go's runtime makes.
// Clock and random numbers are passed in, so that a run can be repeated. The module has no files,
// no network, no arguments.

import { randomFillSync } from 'node:crypto';

export interface EngineHost {
  /** Nanoseconds. The module's runtime measures its own collections with it; the protocol never looks at it. */
  now?: () => bigint;
  /** Fills the bytes: election time-outs, and the seeds of Go's maps. */
  random?: (bytes: Uint8Array) => void;
  /** Log of the library: level 1 to 3, information to error. */
  log?: (level: number, text: string) => void;
}

/** The module has ended its process: a fault of Go's runtime that cannot be caught, as being out of memory. */
class EngineExit extends Error {
  override name = 'EngineExit';
}

const errno = { success: 0, badFile: 8, notSupported: 52 } as const;
const maxText = 4096;

export function imports(host: EngineHost, memory: () => WebAssembly.Memory): WebAssembly.Imports {
  const view = (): DataView => new DataView(memory().buffer);
  const now = host.now ?? (() => process.hrtime.bigint());
  const random = host.random ?? ((bytes: Uint8Array) => void randomFillSync(bytes));
  const text = (at: number, length: number): string =>
    Buffer.from(memory().buffer, at >>> 0, Math.min(length >>> 0, maxText)).toString();
  const nothing = (count: number, size: number): number => {
    view().setUint32(count, 0, true);
    view().setUint32(size, 0, true);
    return errno.success;
  };
  return {
    wasi_snapshot_preview1: {
      args_get: () => errno.success,
      args_sizes_get: nothing,
      environ_get: () => errno.success,
      environ_sizes_get: nothing,
      sched_yield: () => errno.success,
      clock_time_get(_id: number, _precision: bigint, at: number) {
        view().setBigUint64(at, now(), true);
        return errno.success;
      },
      random_get(at: number, length: number) {
        random(new Uint8Array(memory().buffer, at >>> 0, length));
        return errno.success;
      },
      fd_prestat_get: () => errno.badFile,
      fd_prestat_dir_name: () => errno.badFile,
      fd_fdstat_get(_fd: number, at: number) {
        new Uint8Array(memory().buffer, at >>> 0, 24).fill(0);
        return errno.success;
      },
      fd_fdstat_set_flags: () => errno.success,
      fd_close: () => errno.badFile,
      fd_read: () => errno.notSupported,
      /** Only the runtime writes here: why it is about to exit. */
      fd_write(_fd: number, vectors: number, count: number, written: number) {
        let total = 0;
        for (let i = 0; i < count; i++) {
          const length = view().getUint32(vectors + 8 * i + 4, true);
          host.log?.(3, text(view().getUint32(vectors + 8 * i, true), length));
          total += length;
        }
        view().setUint32(written, total, true);
        return errno.success;
      },
      /** The runtime would sleep until a time: it is told that the time has come. Each event is 32 bytes. */
      poll_oneoff(subscriptions: number, events: number, count: number, happened: number) {
        const v = view();
        for (let i = 0; i < count; i++) {
          v.setBigUint64(events + 32 * i, v.getBigUint64(subscriptions + 48 * i, true), true);
          v.setUint16(events + 32 * i + 8, 0, true);
          v.setUint8(events + 32 * i + 10, v.getUint8(subscriptions + 48 * i + 8));
        }
        v.setUint32(happened, count, true);
        return errno.success;
      },
      proc_exit(code: number) {
        throw new EngineExit(`the consensus engine has ended with code ${code}`);
      },
    },
    host: {
      log(level: number, at: number, length: number) {
        host.log?.(level, text(at, length));
      },
    },
  };
}
