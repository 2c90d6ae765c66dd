// A Python that has redis-py; `REDIS_PY` names another one.

import { spawnSync } from 'node:child_process';

const interpreters = [process.env['REDIS_PY'] ?? [], 'python3', '/usr/bin/python3'].flat();

/** Undefined where there is none: then what needs it is skipped. */
export const redisPython = interpreters.find(
  (name) => spawnSync(name, ['-c', 'import redis']).status === 0,
);
