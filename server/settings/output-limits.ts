// `redis.client-output-buffer-limit`, in Redis's notation: `<class> <hard bytes> <soft bytes> <soft seconds>`, once or
// several times.

import type { OutputLimit, OutputLimits } from '../../access/redis/output-limits.ts';
import { parseSize } from './setting.ts';
import { mib } from './setting-forms.ts';

export const defaultOutputLimits = 'normal 0 0 0 pubsub 32mb 8mb 60';
const defaults: OutputLimits = {
  normal: { hardBytes: 0, softBytes: 0, softSeconds: 0 },
  pubsub: { hardBytes: 32 * mib, softBytes: 8 * mib, softSeconds: 60 },
};

// Replicas are not clients here; tools still expect the class in the list.
const replicaLimits = 'slave 268435456 67108864 60';

/** The limits in a text, with those of `before` for omitted classes; or Redis's error text. */
export function parseOutputLimits(text: string, before = defaults): OutputLimits | string {
  const words = text.trim().split(/\s+/);
  if (words.length % 4 !== 0) return 'Wrong number of arguments in buffer limit configuration.';
  const limits = { ...before };
  for (let i = 0; i < words.length; i += 4) {
    const name = words[i]!.toLowerCase();
    const isReplica = name === 'slave' || name === 'replica';
    if (name !== 'normal' && name !== 'pubsub' && !isReplica) {
      return 'Invalid client class specified in buffer limit configuration.';
    }
    const [hardBytes, softBytes] = [parseSize(words[i + 1]!), parseSize(words[i + 2]!)];
    const softSeconds = Number(words[i + 3]);
    if (![hardBytes, softBytes, softSeconds].every((n) => Number.isSafeInteger(n) && n >= 0)) {
      return 'Error in hard, soft or soft_seconds setting in buffer limit configuration.';
    }
    if (!isReplica) limits[name as keyof OutputLimits] = { hardBytes, softBytes, softSeconds };
  }
  return limits;
}

/** Parses a valid text. */
export function outputLimits(text: string): OutputLimits {
  return parseOutputLimits(text) as OutputLimits;
}

/** As CONFIG GET shows them. */
export function showOutputLimits({ normal, pubsub }: OutputLimits): string {
  return `${showLimit('normal', normal)} ${replicaLimits} ${showLimit('pubsub', pubsub)}`;
}

function showLimit(name: string, { hardBytes, softBytes, softSeconds }: OutputLimit): string {
  return `${name} ${hardBytes} ${softBytes} ${softSeconds}`;
}
