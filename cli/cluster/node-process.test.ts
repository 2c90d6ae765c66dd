import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ClusterDirectory } from './cluster-directory.ts';
import { LocalCluster } from './local-cluster.ts';
import { NodeProcess } from './node-process.ts';

let path: string;
let directory: ClusterDirectory;
/** Another program, on the admin port of the first node, that says it is a server. */
let other: Server;

beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), 'polyrow-node-process-'));
  directory = await ClusterDirectory.open(path, 1, undefined);
  other = createServer((_request, response) => response.end('{"status": "ready"}'));
  const { admin } = directory.nodes[0]!;
  await new Promise<void>((resolve) => other.listen(admin, '127.0.0.1', resolve));
});
afterEach(() => {
  other.close();
  other.closeAllConnections();
  rmSync(path, { recursive: true });
});

test('what another program answers at the port of a node is not the answer of the node', async () => {
  const onExit = (): void => {};
  // The process ends at once, as there is no compiled server beside the sources.
  const node = new NodeProcess({ directory, index: 0, flags: [], restarts: false, onExit });
  node.start();
  await expect(node.untilAnswers(() => true)).rejects.toThrow('node 1 did not start');
});

test('a cluster whose ports another program has does not start, and says so', async () => {
  const cluster = await LocalCluster.open({
    ...{ dataDir: path, nodes: undefined, basePort: undefined, flags: [] },
    ...{ restarts: false, remark: () => {} },
  });
  const { admin } = directory.nodes[0]!;
  await expect(cluster.start()).rejects.toThrow(`port ${admin} of node 1 is in use`);
});
