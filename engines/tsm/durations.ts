// How long points are kept, and how long a shard is. Nanoseconds.

export const hour = 3_600_000_000_000n;
export const day = 24n * hour;

/** A policy cannot keep points for less, unless it is for ever, which is 0. */
export const minRetention = hour;

/** The shard duration that goes with a policy's duration. */
function shardDurationFor(duration: bigint): bigint {
  if (duration === 0n || duration >= 180n * day) return 7n * day;
  return duration >= 2n * day ? day : hour;
}

/**
 * The shard duration of a policy for a requested one: 0 or undefined derives it from the policy's
 * duration.
 */
export function normalShardDuration(asked: bigint | undefined, duration: bigint): bigint {
  if (asked === undefined || asked === 0n) return shardDurationFor(duration);
  return asked < minRetention ? shardDurationFor(minRetention) : asked;
}
