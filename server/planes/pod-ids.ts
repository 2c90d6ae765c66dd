/** Pods are distinguished in their logs, so that no log is ever replayed into another's engine. */
export const podIds = { memory: 1, kv: 2, tsm: 3 } as const;
