// LATENCY: what took long, and how long each command takes.

import type { Client, ClientCommand } from '../client.ts';
import type { LatencySample } from '../latency.ts';
import type { RespWriter } from '../resp-writer.ts';
import type { CommandEntry } from './registry.ts';
import { helpOf } from './support/help.ts';

const common = { group: 'server', flags: ['admin', 'noscript', 'loading', 'stale'] } as const;

const graphRows = 5;
const graphMarks = ['_', 'o', '#'] as const;

/** One column a sample, higher the longer it took. */
function graphOf(name: string, samples: readonly LatencySample[]): string {
  const all = samples.map(({ ms }) => ms);
  const high = Math.max(...all);
  const low = Math.min(...all);
  const span = Math.max(1, high - low);
  const steps = graphRows * graphMarks.length;
  const levels = all.map((ms) => Math.min(steps - 1, Math.floor(((ms - low) / span) * steps)));
  const lines = [`${name} - high ${high} ms, low ${low} ms (all time high ${high} ms)`];
  lines.push('-'.repeat(80));
  for (let row = graphRows - 1; row >= 0; row--) {
    const marks = levels.map((level) => {
      const own = level - row * graphMarks.length;
      return own < 0 ? ' ' : (graphMarks[own] ?? '|');
    });
    lines.push(marks.join('').trimEnd());
  }
  return `${lines.join('\n')}\n`;
}

function advice({ server: { latency } }: Client): string {
  if (latency.thresholdMs === Infinity) {
    return 'I\'m sorry, Dave, I can\'t do that. Latency monitoring is disabled in this instance. You may use "CONFIG SET latency-monitor-threshold <milliseconds>." in order to enable it.\n';
  }
  if (latency.events.size === 0) {
    return 'No latency spike was observed since the last LATENCY RESET.\n';
  }
  const lines = ['Latency spikes were observed:', ''];
  let number = 0;
  for (const [name, { samples, maxMs }] of latency.events) {
    const mean = samples.reduce((sum, { ms }) => sum + ms, 0) / samples.length;
    lines.push(
      `${++number}. ${name}: ${samples.length} latency spikes (average ${mean.toFixed(0)} ms). Worst all time event ${maxMs} ms.`,
    );
  }
  lines.push('', 'SLOWLOG GET shows the commands, and /metrics what else kept the thread.');
  return `${lines.join('\n')}\n`;
}

function writeHistograms(entries: readonly CommandEntry[], reply: RespWriter): void {
  const used = entries.filter(({ latencies }) => latencies.total > 0);
  reply.map(used.length);
  for (const { fullName, latencies } of used) {
    const bounds = latencies.cumulative();
    reply.text(fullName);
    reply.map(2);
    reply.text('calls');
    reply.integer(latencies.total);
    reply.text('histogram_usec');
    reply.map(bounds.length);
    for (const [bound, count] of bounds) {
      reply.integer(bound);
      reply.integer(count);
    }
  }
}

/** A container stands for its subcommands. */
function named({ server }: Client, name: string): CommandEntry[] {
  const entry = server.registry.getFull(name);
  if (entry === undefined) return [];
  return entry.subcommands === undefined ? [entry] : [...entry.subcommands.values()];
}

const subcommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'latest',
    arity: 2,
    since: '2.8.13',
    summary: 'Returns the latest latency samples for all events.',
    complexity: 'O(1)',
    handle({ server: { latency } }, _args, reply) {
      reply.array(latency.events.size);
      for (const [name, { samples, maxMs }] of latency.events) {
        const last = samples.at(-1)!;
        reply.array(4);
        reply.text(name);
        reply.integer(last.at);
        reply.integer(last.ms);
        reply.integer(maxMs);
      }
    },
  },
  {
    ...common,
    name: 'history',
    arity: 3,
    syntax: 'event',
    since: '2.8.13',
    summary: 'Returns timestamp-latency samples for an event.',
    complexity: 'O(1)',
    handle({ server: { latency } }, args, reply) {
      const samples = latency.events.get(args.text(2))?.samples ?? [];
      reply.array(samples.length);
      for (const { at, ms } of samples) {
        reply.array(2);
        reply.integer(at);
        reply.integer(ms);
      }
    },
  },
  {
    ...common,
    name: 'reset',
    arity: -2,
    syntax: '[event [event ...]]',
    since: '2.8.13',
    summary: 'Resets the latency data for one or more events.',
    complexity: 'O(1)',
    handle({ server: { latency } }, args, reply) {
      const names = args.count === 2 ? [...latency.events.keys()] : [];
      for (let i = 2; i < args.count; i++) names.push(args.text(i));
      reply.integer(names.filter((name) => latency.reset(name)).length);
    },
  },
  {
    ...common,
    name: 'graph',
    arity: 3,
    syntax: 'event',
    since: '2.8.13',
    summary: 'Returns a latency graph for an event.',
    complexity: 'O(1)',
    handle({ server: { latency } }, args, reply) {
      const event = latency.events.get(args.text(2));
      if (event !== undefined) reply.verbatim(graphOf(args.text(2), event.samples));
      else reply.error(`ERR No samples available for event '${args.latin1(2)}'`);
    },
  },
  {
    ...common,
    name: 'doctor',
    arity: 2,
    since: '2.8.13',
    summary: 'Returns a human-readable latency analysis report.',
    complexity: 'O(1)',
    handle(client, _args, reply) {
      reply.verbatim(advice(client));
    },
  },
  {
    ...common,
    name: 'histogram',
    arity: -2,
    syntax: '[command [command ...]]',
    since: '7.0.0',
    summary: 'Returns the cumulative distribution of latencies of a subset or all commands.',
    complexity: 'O(N) where N is the number of commands with latency information being retrieved.',
    handle(client, args, reply) {
      const names: string[] = [];
      for (let i = 2; i < args.count; i++) names.push(args.text(i));
      const found =
        names.length === 0
          ? [...client.server.registry.entries()]
          : names.flatMap((name) => named(client, name));
      writeHistograms(found, reply);
    },
  },
];

export const latencyCommands: readonly ClientCommand[] = [
  {
    group: 'server',
    name: 'latency',
    serverWide: true,
    arity: -2,
    flags: [],
    since: '2.8.13',
    summary: 'A container for latency diagnostics commands.',
    handle(_client, _args, reply) {
      reply.error("ERR wrong number of arguments for 'latency' command");
    },
    subcommands: [...subcommands, helpOf('latency', subcommands)],
  },
];
