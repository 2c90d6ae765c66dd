// Every group of commands the server has. A new data type adds its line here.

import { aclCommands } from './acl.ts';
import { bitmapCommands } from './bitmap.ts';
import { clientCommands } from './client.ts';
import { clusterCommands } from './cluster.ts';
import { connectionCommands } from './connection.ts';
import { dumpCommands } from './dump.ts';
import { geoCommands } from './geo.ts';
import { functionCommands } from './functions.ts';
import { hashCommands } from './hash.ts';
import { hashTimeCommands } from './hash-times.ts';
import { hyperloglogCommands } from './hyperloglog.ts';
import { introspectionCommands } from './introspection.ts';
import { keysCommands } from './keys.ts';
import { latencyCommands } from './latency.ts';
import { consistencyCommands } from './consistency.ts';
import { listCommands } from './list.ts';
import { memoryCommands } from './memory.ts';
import { pubsubCommands } from './pubsub.ts';
import { ruCommands } from './ru.ts';
import { scriptingCommands } from './scripting.ts';
import { serverCommands } from './server.ts';
import { setCommands } from './set.ts';
import { sortedSetCommands } from './sorted-set.ts';
import { streamCommands } from './stream.ts';
import { stringCommands } from './string.ts';
import { transactionCommands } from './transactions.ts';
import type { CommandSpec } from './spec.ts';

export const allCommands: readonly (readonly CommandSpec[])[] = [
  stringCommands,
  hashCommands,
  hashTimeCommands,
  listCommands,
  setCommands,
  sortedSetCommands,
  streamCommands,
  bitmapCommands,
  hyperloglogCommands,
  geoCommands,
  keysCommands,
  consistencyCommands,
  dumpCommands,
  pubsubCommands,
  transactionCommands,
  scriptingCommands,
  functionCommands,
  connectionCommands,
  aclCommands,
  clientCommands,
  serverCommands,
  latencyCommands,
  memoryCommands,
  clusterCommands,
  ruCommands,
  introspectionCommands,
];
