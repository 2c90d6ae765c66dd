// A node of its own process, for tests that kill it: groups of registers on a real disk, links over
// TCP. Its parent sends `ProcessRequest`s and receives `ProcessAnswer`s. Its one argument is JSON
// of `ProcessOptions`.

import { join } from 'node:path';
import { setImmediate as nextStep } from 'node:timers/promises';
import { ClusterListener } from '../../../cluster-links/cluster-listener.ts';
import { realDisk } from '../../disk/real-disk.ts';
import type { Outcome } from '../partition-log.ts';
import { TcpTransport } from '../transport/tcp-transport.ts';
import { RaftHost } from './raft-host.ts';
import { firstPosition } from './log-position.ts';
import type { RaftGroup } from './raft-group.ts';
import { RegisterMachine } from './register-fixture.ts';
import { replicaId } from './replica-id.ts';

export interface ProcessOptions {
  node: number;
  nodes: number;
  directory: string;
  groups: number;
  /** With the limits of a server, not those with which a test has many checkpoints and segments. */
  isLarge?: boolean;
  /** 0 for a free one, which the `ready` answer tells. */
  port: number;
}

export type ProcessRequest =
  | { kind: 'peers'; ports: Record<number, number> }
  | { kind: 'write'; id: number; group: number; name: string; value: string }
  | { kind: 'read'; id: number; group: number; name: string }
  | { kind: 'leaders' };

export type ProcessAnswer =
  | { kind: 'ready'; port: number; milliseconds: number }
  /** `refused`: nothing of it was done. */
  | { kind: 'written'; id: number; outcome: Outcome | 'refused' }
  | { kind: 'value'; id: number; value: string | undefined; isSafe: boolean }
  /** The groups that this node leads. */
  | { kind: 'leaders'; groups: number[] };

interface Group {
  log: RaftGroup;
  machine: RegisterMachine;
  /** Ids of writes, by position. */
  waiting: Map<number, number>;
}

const smallLimits = {
  segmentBytes: 1024 * 1024,
  maxLogBytes: 8 * 1024 * 1024,
  limits: { checkpointEntries: 200, keptEntries: 100 },
};
const openedAtOnce = 20;

const options = JSON.parse(process.argv[2]!) as ProcessOptions;
const answer = (message: ProcessAnswer): void => void process.send!(message);

async function main(): Promise<void> {
  const began = performance.now();
  const { node, nodes, directory, port } = options;
  const identity = { cluster: '1', node: String(node), incarnation: Date.now(), level: 1 };
  const context = { identity, secret: Buffer.from('of this test only') };
  const links = new ClusterListener(context, () => undefined);
  const transport = new TcpTransport({ listener: links, context });
  const host = await RaftHost.open({
    disk: realDisk,
    directory: join(directory, 'wal'),
    ids: { cluster: 1, node },
    transport,
    onFatal(error) {
      process.stderr.write(`${String(error.stack)}\n`);
      process.exit(1);
    },
    ...(options.isLarge === true ? {} : smallLimits),
  });
  const first = firstPosition(Array.from({ length: nodes }, (_, i) => replicaId(i + 1)));
  const groups: Group[] = [];
  const openGroup = (i: number): Group => {
    const machine = new RegisterMachine(realDisk, join(directory, 'rows'), `group-${i}`);
    const waiting = new Map<number, number>();
    const log = host.openGroup({
      group: i + 1,
      replica: replicaId(node),
      first,
      machine,
      listener: {
        onOutcome(position, outcome) {
          answer({ kind: 'written', id: waiting.get(position)!, outcome });
          waiting.delete(position);
        },
        onRole: () => undefined,
      },
    });
    machine.onDurable = (index) => log.stateIsDurable(index);
    return { log, machine, waiting };
  };
  for (let i = 0; i < options.groups; i++) {
    groups.push(openGroup(i));
    if (i % openedAtOnce === 0) await nextStep();
  }
  await links.listen('127.0.0.1', port);
  process.on('message', (request: ProcessRequest) => serve(request, groups, transport));
  process.on('disconnect', () => process.exit(0));
  answer({ kind: 'ready', port: links.port, milliseconds: performance.now() - began });
}

function serve(request: ProcessRequest, groups: readonly Group[], transport: TcpTransport): void {
  switch (request.kind) {
    case 'peers': {
      const peers = Object.entries(request.ports).map(
        ([node, port]) => [Number(node), { host: '127.0.0.1', port }] as const,
      );
      transport.setPeers(new Map(peers));
      break;
    }
    case 'write': {
      const { log, waiting } = groups[request.group]!;
      const position = log.propose(Buffer.from(`${request.name}=${request.value}`));
      if (position < 0) answer({ kind: 'written', id: request.id, outcome: 'refused' });
      else waiting.set(position, request.id);
      break;
    }
    case 'read': {
      const { log, machine } = groups[request.group]!;
      log.readBarrier((isSafe) => {
        const value = machine.registers.get(request.name);
        answer({ kind: 'value', id: request.id, value, isSafe });
      });
      break;
    }
    case 'leaders': {
      const led = groups.flatMap(({ log }, i) => (log.role === 'leader' ? [i] : []));
      answer({ kind: 'leaders', groups: led });
      break;
    }
  }
}

await main();
