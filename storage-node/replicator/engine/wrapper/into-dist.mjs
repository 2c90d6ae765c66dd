// A step of `npm run build`: tsc copies no files that are not code.

import { copyFileSync, mkdirSync } from 'node:fs';

const from = new URL('../', import.meta.url);
const to = new URL('../../../../dist/storage-node/replicator/engine/', import.meta.url);
mkdirSync(to, { recursive: true });
for (const name of [
  'raft.wasm.br',
  'raft.wasm.sha256',
  'NOTICE',
  'LICENSE.etcd-raft',
  'LICENSE.go',
]) {
  copyFileSync(new URL(name, from), new URL(name, to));
}
