// Requests about all clients of a tenant, or of the server, on any node. Each node of a cluster
// answers for itself; the node of the client that asks puts the answers together. A node out of
// reach is left out. A reachable node that does not answer in time is left out of lists and sums,
// and named in an error where it had to act. A transaction does not wait: within it a command
// covers this node only.

import { clientOfNode } from '../../universal-row/command.ts';
import { type MaybePromise, whenReady } from '../../universal-row/maybe-promise.ts';
import type { Reply } from '../../universal-row/reply.ts';
import { Glob } from '../../universal-row/transforms/redis/glob.ts';
import type { Client, ClientServer } from './client.ts';
import { describeClient, typeOf } from './describe-client.ts';
import { eachInSlices } from './in-slices.ts';
import { infoSums } from './info-sums.ts';
import type { RespWriter } from './resp-writer.ts';
import type { Tenant } from './tenant.ts';
import { nodeOf, ownIdOf, wideIdOf } from './wide-id.ts';
import type {
  KillFilter,
  Questions,
  WideAnswer,
  WideName,
  WideQuestion,
} from './wide-questions.ts';

interface Place {
  readonly server: ClientServer;
  readonly tenant: Tenant<Client>;
}

type Answers = {
  readonly [K in WideName]: (
    place: Place,
    question: Questions[K][0],
    self?: Client,
  ) => MaybePromise<WideAnswer<K>>;
};

const answers: Answers = {
  listClients({ tenant }, { type, ids }, self) {
    const wanted = ids && new Set(ids);
    const shown = [...tenant.connections]
      .filter((one) => type === undefined || typeOf(one) === type)
      .filter((one) => wanted === undefined || wanted.has(wideIdOf(one)))
      .sort((a, b) => a.id - b.id);
    const lines: string[] = [];
    const all = inSlices(self, shown, (one) => {
      lines.push(`${describeClient(one, one === self ? one.entry : undefined)}\n`);
    });
    return whenReady(all, () => lines);
  },
  killClients({ tenant }, filter, self) {
    const doomed = [...tenant.connections].filter((one) => matches(one, filter));
    const killed = inSlices(self, doomed, (one) => one.destroy(), killsAtOnce);
    return whenReady(killed, () => doomed.length);
  },
  unblockClient({ server, tenant }, { id, withError }) {
    const client = server.connections.get(ownIdOf(id, server) ?? -1);
    return client !== undefined && client.tenant === tenant && client.unblockNow(withError);
  },
  pauseClients({ server }, { ms, writesOnly }) {
    server.pauseClients(ms, writesOnly);
    return null;
  },
  unpauseClients({ server }) {
    server.unpauseClients();
    return null;
  },
  slowlog({ tenant, server }, { count }) {
    const { entries } = tenant.slowlog;
    const shown = count === -1 ? entries : entries.slice(0, count);
    return shown.map((entry) => ({
      ...entry,
      id: clientOfNode(nodeOf(server), entry.id),
      words: entry.words.map((word) => word.toString('latin1')),
    }));
  },
  slowlogLength: ({ tenant }) => tenant.slowlog.entries.length,
  resetSlowlog({ tenant }) {
    tenant.slowlog.reset();
    return null;
  },
  aclLog: ({ tenant }, { count }) => tenant.aclLog.entries.slice(0, count),
  resetAclLog({ tenant }) {
    tenant.aclLog.reset();
    return null;
  },
  channels({ tenant: { pubsub } }, { isSharded, pattern }, self) {
    const bytes = pattern === undefined ? undefined : Buffer.from(pattern, 'latin1');
    const glob = bytes && new Glob(bytes, 0, bytes.length);
    const found: string[] = [];
    const all = [...(isSharded ? pubsub.shardChannels : pubsub.channels).keys()];
    const looked = inSlices(
      self,
      all,
      (name) => {
        const own = glob && Buffer.from(name, 'latin1');
        if (own === undefined || glob!.matches(own, 0, own.length)) found.push(name);
        return name.length;
      },
      channelsAtOnce,
    );
    return whenReady(looked, () => found);
  },
  countListeners({ tenant: { pubsub } }, { isSharded, names }, self) {
    const listeners = isSharded ? pubsub.shardChannels : pubsub.channels;
    const counts: number[] = [];
    const looked = inSlices(
      self,
      names,
      (name) => {
        counts.push(listeners.get(name)?.size ?? 0);
        return name.length;
      },
      channelsAtOnce,
    );
    return whenReady(looked, () => counts);
  },
  patterns: ({ tenant }) => [...tenant.pubsub.patterns.keys()],
  latencyEvents: ({ server }) =>
    Array.from(server.latency.events, ([name, event]) => ({ name, ...event })),
  latencyHistograms({ server: { registry } }, { names }) {
    const entries =
      names.length === 0
        ? [...registry.entries()]
        : names.flatMap((name) => {
            const entry = registry.getFull(name);
            // A container stands for its subcommands.
            return entry === undefined ? [] : [...(entry.subcommands?.values() ?? [entry])];
          });
    return entries
      .filter(({ latencies }) => latencies.total > 0)
      .map(({ fullName, latencies }) => ({ name: fullName, counts: latencies.counts }));
  },
  resetLatency({ server: { latency } }, { names }) {
    const all = names.length === 0 ? [...latency.events.keys()] : names;
    return all.filter((name) => latency.reset(name));
  },
  resetStatistics({ server }) {
    server.resetStatistics();
    return null;
  },
  infoSums: ({ server, tenant }) => infoSums(server, tenant),
  setConfig({ server }, { changes }) {
    for (const [name, value] of changes) {
      const wrong = server.config.get(name)?.set?.(value);
      if (wrong !== undefined) return wrong;
    }
    return null;
  },
};

/** Closing a socket takes longer than looking at one. */
const killsAtOnce = 64;
/** Names that PUBSUB CHANNELS and PUBSUB NUMSUB look at in one step. */
const channelsAtOnce = 4096;

/** For a client of another node as for one of this node outside of EXEC. */
function inSlices<T>(
  self: Client | undefined,
  items: readonly T[],
  visit: (item: T) => number | void,
  perSlice?: number,
): MaybePromise<void> {
  return eachInSlices(self ?? { isExecuting: false }, items, visit, perSlice);
}

export function matches(one: Client, filter: KillFilter): boolean {
  const { id, type, address, localAddress, user, except } = filter;
  return (
    (except === undefined || wideIdOf(one) !== except) &&
    (id === undefined || wideIdOf(one) === id) &&
    (type === undefined || typeOf(one) === type) &&
    (address === undefined || one.address === address) &&
    (localAddress === undefined || one.localAddress === localAddress) &&
    (user === undefined || one.user === user)
  );
}

export function isWide(question: { readonly what: string }): question is WideQuestion {
  return Object.hasOwn(answers, question.what);
}

/** This node's part of an answer; `self` is the client that asks, if it is of this node. */
export function answerHere<K extends WideName>(
  place: Place,
  question: WideQuestion<K>,
  self?: Client,
): MaybePromise<WideAnswer<K>> {
  return answers[question.what as K](place, question, self);
}

interface AnswerOfNode<T> {
  readonly node: number;
  readonly answer: T;
}

/** Answers of all nodes, this one included, by node number. */
interface AllAnswers<T> {
  readonly answers: readonly T[];
  readonly ofNodes: readonly AnswerOfNode<T>[];
  /** Nodes in reach that have not answered in time. */
  readonly silent: readonly number[];
}

/** Asks all nodes, and calls `write` with their answers and the writer of the client's reply. */
export function askWide<K extends WideName>(
  client: Client,
  what: K,
  of: Questions[K][0],
  reply: RespWriter,
  write: (out: RespWriter, all: AllAnswers<WideAnswer<K>>) => void | Promise<Reply | void>,
): void | Promise<Reply | void> {
  const { server, tenant } = client;
  const question = { ...(of as object), what, tenant: tenant.number } as WideQuestion<K>;
  const asked = client.isExecuting
    ? undefined
    : server.elsewhere?.askNodes(question as WideQuestion);
  const here = answerHere({ server, tenant }, question, client);
  const node = nodeOf(server);
  const done = (
    others: readonly AnswerOfNode<unknown>[],
    silent: readonly number[],
  ): void | Promise<Reply | void> => {
    const finish = (answer: unknown): void | Promise<Reply | void> => {
      if (client.closed) return;
      const ofNodes = [{ node, answer }, ...others].sort((x, y) => x.node - y.node) as {
        node: number;
        answer: WideAnswer<K>;
      }[];
      const all = { answers: ofNodes.map((one) => one.answer), ofNodes, silent };
      return write(outOf(client, reply), all);
    };
    return here instanceof Promise ? here.then(finish) : finish(here);
  };
  if (asked === undefined) return done([], []);
  return asked.then(({ answers, silent }) => {
    // A node that has just started may not know the tenant yet.
    const without = answers.filter(({ answer }) => answer === undefined).map((one) => one.node);
    const others = answers.filter(({ answer }) => answer !== undefined);
    return done(others, [...silent, ...without]);
  });
}

/** The names that the nodes answered, each once. One node names none twice. */
export function allNames(answers: readonly (readonly string[])[]): readonly string[] {
  return answers.length === 1 ? answers[0]! : [...new Set(answers.flat())];
}

/**
 * As `askWide`, for actions of all nodes: replies OK, or an error that names the nodes without an
 * answer.
 */
export function doWide<K extends WideName>(
  client: Client,
  what: K,
  of: Questions[K][0],
  reply: RespWriter,
): void | Promise<Reply | void> {
  return askWide(client, what, of, reply, (out, { ofNodes, silent }) => {
    const refused = ofNodes.filter(({ answer }) => answer !== null);
    if (refused.length > 0) {
      const { node, answer } = refused[0]!;
      out.error(`ERR done, but not on node ${node}: ${JSON.stringify(answer)}`);
    } else if (silent.length > 0) {
      out.error(`ERR done, but node ${silent.join(', ')} has not answered in time`);
    } else out.ok();
  });
}

/**
 * The writer for the reply: within EXEC the transaction's, else a segment of its own after the
 * output for other clients.
 */
function outOf(client: Client, reply: RespWriter): RespWriter {
  return client.isExecuting && reply !== client.server.writer ? reply : client.answer();
}
