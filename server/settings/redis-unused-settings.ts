// Settings of redis-server that are about how it works inside, or about files and replicas that are not here. Tools read
// and set them, so they are kept, within Redis's own bounds, and have no effect. They are lost at a stop, as with
// redis-server without a configuration file.

import { parseSize } from './setting.ts';

type Kind =
  | { readonly is: 'integer' | 'size'; readonly min: number; readonly max: number }
  | { readonly is: 'yes or no' }
  | { readonly is: 'save' };

export interface UnusedSetting {
  readonly name: string;
  readonly value: string;
  readonly kind: Kind;
}

const most = 2 ** 31 - 1;
const yesOrNo: Kind = { is: 'yes or no' };

const flag = (name: string, value: 'yes' | 'no'): UnusedSetting => ({ name, value, kind: yesOrNo });
const integer = (name: string, value: number, min: number, max: number): UnusedSetting => ({
  name,
  value: String(value),
  kind: { is: 'integer', min, max },
});
const size = (name: string, value: number, min = 0): UnusedSetting => ({
  name,
  value: String(value),
  kind: { is: 'size', min, max: Number.MAX_SAFE_INTEGER },
});

export const unusedSettings: readonly UnusedSetting[] = [
  integer('active-expire-effort', 1, 1, 10),
  flag('activedefrag', 'no'),
  flag('activerehashing', 'yes'),
  flag('aof-rewrite-incremental-fsync', 'yes'),
  integer('auto-aof-rewrite-percentage', 100, 0, most),
  size('auto-aof-rewrite-min-size', 64 * 1024 * 1024),
  flag('dynamic-hz', 'yes'),
  integer('hz', 10, 0, most),
  flag('jemalloc-bg-thread', 'yes'),
  flag('lazyfree-lazy-eviction', 'no'),
  flag('lazyfree-lazy-expire', 'no'),
  flag('lazyfree-lazy-server-del', 'no'),
  flag('lazyfree-lazy-user-del', 'no'),
  flag('lazyfree-lazy-user-flush', 'no'),
  integer('lfu-decay-time', 1, 0, most),
  integer('lfu-log-factor', 10, 0, most),
  integer('list-compress-depth', 0, 0, most),
  integer('maxmemory-eviction-tenacity', 10, 0, 100),
  flag('no-appendfsync-on-rewrite', 'no'),
  flag('rdb-save-incremental-fsync', 'yes'),
  flag('rdbcompression', 'yes'),
  size('repl-backlog-size', 1024 * 1024, 1),
  integer('repl-backlog-ttl', 3600, 0, most),
  integer('repl-diskless-sync-delay', 5, 0, most),
  flag('repl-diskless-sync', 'yes'),
  integer('repl-ping-replica-period', 10, 1, most),
  integer('repl-timeout', 60, 1, most),
  { name: 'save', value: '', kind: { is: 'save' } },
  flag('stop-writes-on-bgsave-error', 'yes'),
  size('stream-node-max-bytes', 4096),
];

/** The value to keep, in Redis's form; `problem` is Redis's error text. */
export function parseUnused(kind: Kind, text: string): { value: string } | { problem: string } {
  switch (kind.is) {
    case 'yes or no': {
      const value = text.toLowerCase();
      return value === 'yes' || value === 'no'
        ? { value }
        : { problem: "argument must be 'yes' or 'no'" };
    }
    case 'save': {
      const words = text.split(/\s+/).filter((word) => word !== '');
      const isGood =
        words.length % 2 === 0 &&
        words.every((word, i) => /^\d{1,10}$/.test(word) && (i % 2 === 1 || Number(word) > 0));
      return isGood ? { value: words.join(' ') } : { problem: 'Invalid save parameters' };
    }
    default: {
      const isSize = kind.is === 'size';
      const value = isSize ? parseSize(text) : Number(text === '' ? NaN : text);
      if (isSize && Number.isNaN(value)) return { problem: 'argument must be a memory value' };
      if (!Number.isSafeInteger(value)) {
        return { problem: "argument couldn't be parsed into an integer" };
      }
      if (value < kind.min || value > kind.max) {
        return { problem: `argument must be between ${kind.min} and ${kind.max} inclusive` };
      }
      return { value: String(value) };
    }
  }
}
