// Consistency of a client's reads, and replication of its writes: CONSISTENCY, WAIT, WAITAOF.

import { anyAge, defaultBounds } from '../../../contracts/table-properties.ts';
import type { Arguments } from '../../../universal-row/arguments.ts';
import { Action } from '../../../universal-row/command.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import { wait, waitaof } from '../../../universal-row/transforms/redis/keys.ts';
import { GroupExecutor } from '../../gateway/pods/group-executor.ts';
import { SeenState } from '../../gateway/session-token.ts';
import type { Client, ClientCommand } from '../client.ts';
import type { Elsewhere } from '../elsewhere.ts';
import { PartitionedTable } from '../partitions/partitioned-table.ts';
import { type ReadMode, sessionOf } from '../read-mode.ts';
import type { RespWriter } from '../resp-writer.ts';
import { noKeys } from './spec.ts';

const positionMs = 5000;
/** A client that waits for replicas may be gone. */
const askMs = 1000;
const noSession = 'ERR this connection has no session: CONSISTENCY SESSION begins one';
const noPosition = 'ERR what the session has seen cannot be told now: a partition has no leader';
const pauseMs = 20;
/** The longest time of a timer. */
const longestMs = 2 ** 31 - 1;

/** Groups of replicas with the rows of the client's table. */
function groupsOf({ server, table }: Client): number[] {
  const { group, executor } = server.router.to(table);
  if (group !== undefined) return [group.group];
  if (!(executor instanceof PartitionedTable)) return [];
  return executor.lanes.flatMap(({ partition: { pod } }) =>
    pod instanceof GroupExecutor ? [pod.group] : [],
  );
}

function modeOf(args: Arguments): ReadMode | undefined {
  const [most, least] = args.is(1, 'BOUNDED') ? [4, 3] : [args.is(1, 'SESSION') ? 3 : 2, 2];
  if (args.count < least || args.count > most) throw new CommandError('ERR syntax error');
  if (args.is(1, 'TABLE')) return undefined;
  if (args.is(1, 'STRONG')) return { words: 'strong', bounds: undefined };
  if (args.is(1, 'EVENTUAL')) return { words: 'eventual', bounds: anyAge };
  if (args.is(1, 'SESSION')) {
    const session = args.count === 3 ? sessionOf(args.text(2)) : new SeenState();
    return { words: 'session', bounds: { ...anyAge, session }, session };
  }
  if (!args.is(1, 'BOUNDED')) throw new CommandError('ERR syntax error');
  const maxStalenessMs = args.integer(2);
  const maxLagEntries = args.count === 4 ? args.integer(3) : defaultBounds.maxLagEntries;
  if (maxStalenessMs < 0 || maxLagEntries < 0) {
    throw new CommandError('ERR value is out of range, must be positive');
  }
  const words = `bounded ${maxStalenessMs} ${maxLagEntries}`;
  return { words, bounds: { maxStalenessMs, maxLagEntries } };
}

/** All that the client has seen, now that its commands so far are answered. */
async function writeToken(client: Client, session: SeenState): Promise<void> {
  const { elsewhere } = client.server;
  try {
    for (const group of new Set([...session.groups, ...groupsOf(client)])) {
      if (session.needs(group) !== Infinity || elsewhere === undefined) continue;
      const { index } = await elsewhere.position(group, 0, positionMs);
      session.saw(group, index);
    }
    client.answer().text(session.token());
  } catch {
    client.answer().error(noPosition);
  }
}

/** On how many disks something is: that of the leader, and of replicas beside it. */
interface Disks {
  readonly local: number;
  readonly copies: number;
}

/** On how many disks all is that this client was answered to have written; waits until these are at least so many. */
async function disksOf(client: Client, least: Disks, ms: number, isSynced = false): Promise<Disks> {
  const { elsewhere } = client.server;
  const deadline = performance.now() + (ms === 0 ? Infinity : ms);
  let [local, copies] = [1, Infinity];
  for (const group of groupsOf(client)) {
    const found = await disksOfGroup(group);
    [local, copies] = [Math.min(local, found.local), Math.min(copies, found.copies)];
  }
  return copies === Infinity ? { local: 0, copies: 0 } : { local, copies };

  async function disksOfGroup(group: number): Promise<Disks> {
    const isAsked = least.local + least.copies > 0;
    for (let known = { local: 0, copies: 0 }; ; ) {
      const left = Math.max(0, deadline - performance.now());
      const ms = isAsked ? Math.min(left, askMs) : 0;
      const most = Math.max(least.copies, 1);
      const asked = (elsewhere as Elsewhere).position(group, most, ms, least.local === 1);
      // The group has no leader just now: it is asked again after a pause.
      const answer = await asked.catch(() => undefined);
      if (answer !== undefined) {
        // Whether other nodes have synced their logs is not known where they answer before that.
        const copies = isSynced && answer.isRelaxed === true ? 0 : answer.copies;
        known = { local: answer.isLocal === true ? 1 : 0, copies };
      }
      const isDone = known.copies >= least.copies && known.local >= least.local;
      if (isDone || left === 0 || client.closing || client.socket.destroyed) return known;
      if (answer === undefined) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

/** In a cluster; on a server alone, and in MULTI, there is nothing to wait for. */
function waitFor(client: Client, args: Arguments, reply: RespWriter): Promise<void> {
  const mark = reply.mark();
  wait(undefined as never, args, reply);
  reply.rollback(mark);
  const least = { local: 0, copies: args.integer(1) };
  return disksOf(client, least, args.integer(2)).then(({ copies }) => {
    client.answer().integer(copies);
  });
}

function waitForDisks(client: Client, args: Arguments, reply: RespWriter): Promise<void> {
  const mark = reply.mark();
  waitaof(undefined as never, args, reply);
  reply.rollback(mark);
  const [local, copies, ms] = [args.integer(1), args.integer(2), args.integer(3)];
  const { elsewhere } = client.server;
  const found =
    elsewhere === undefined
      ? ownDisk(client, local, ms)
      : disksOf(client, { local, copies }, ms, true);
  return found.then((disks) => {
    const answer = client.answer();
    answer.array(2);
    answer.integer(disks.local);
    answer.integer(disks.copies);
  });
}

/** Of a server alone: there are no replicas to wait for. */
async function ownDisk(client: Client, local: number, ms: number): Promise<Disks> {
  if (local === 0) return { local: 0, copies: 0 };
  let timer: NodeJS.Timeout | undefined;
  const isOver = new Promise<number>((resolve) => {
    if (ms > 0) timer = setTimeout(() => resolve(0), Math.min(ms, longestMs));
  });
  // While the disk fails it is on none, as health checks tell.
  const synced = client.server.facts.synced().then(
    () => 1,
    () => 0,
  );
  const isSynced = await Promise.race([synced, isOver]);
  clearTimeout(timer);
  return { local: isSynced, copies: 0 };
}

const common = { flags: ['noscript'], group: 'generic' } as const;

export const consistencyCommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'wait',
    arity: 3,
    syntax: 'numreplicas timeout:integer',
    since: '3.0.0',
    summary: 'Waits until replicas have the writes made so far.',
    complexity: 'O(1)',
    keys: noKeys,
    action: Action.fetch,
    run: wait,
    handle: waitFor,
  },
  {
    ...common,
    name: 'waitaof',
    arity: 4,
    syntax: 'numlocal numreplicas timeout:integer',
    since: '7.2.0',
    summary: 'Waits until the writes made so far are on disk, here and at replicas.',
    complexity: 'O(1)',
    keys: noKeys,
    action: Action.fetch,
    run: waitaof,
    handle: waitForDisks,
    handlesAlone: true,
  },
  {
    name: 'consistency',
    arity: -2,
    syntax:
      '<TABLE | STRONG | EVENTUAL | BOUNDED milliseconds:integer [entries:integer] | SESSION [token] | TOKEN | GET>',
    flags: ['noscript', 'loading', 'stale', 'no_multi'],
    group: 'connection',
    since: '7.2.0',
    summary: 'Sets the consistency of reads of the connection, overriding the tables.',
    complexity: 'O(1)',
    handle(client, args, reply) {
      const mode = client.readMode;
      if (args.is(1, 'GET') && args.count === 2) {
        reply.text(mode?.words ?? 'table');
        return undefined;
      }
      if (args.is(1, 'TOKEN') && args.count === 2) {
        if (mode?.session === undefined) throw new CommandError(noSession);
        return writeToken(client, mode.session);
      }
      client.readMode = modeOf(args);
      reply.ok();
      return undefined;
    },
  },
];
