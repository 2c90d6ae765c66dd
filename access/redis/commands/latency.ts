// LATENCY: slow events, and latency by command.

import type { Client, ClientCommand, ClientHandler } from '../client.ts';
import { allNames, askWide } from '../cluster-wide.ts';
import { LatencyHistogram, type LatencySample } from '../latency.ts';
import type { RespWriter } from '../resp-writer.ts';
import type { WideLatencyEvent } from '../wide-questions.ts';
import { helpOf } from './support/help.ts';

const common = { group: 'server', flags: ['admin', 'noscript', 'loading', 'stale'] } as const;

const graphRows = 5;
const graphMarks = ['_', 'o', '#'] as const;

type EventsByName = ReadonlyMap<string, Pick<WideLatencyEvent, 'samples' | 'maxMs'>>;

/** Slow events of any node: the longest of each second. */
function ofAllNodes(
  client: Client,
  reply: RespWriter,
  write: (out: RespWriter, events: EventsByName) => void,
): ReturnType<ClientHandler> {
  return askWide(client, 'latencyEvents', {}, reply, (out, { answers }) => {
    const events = new Map<string, { samples: LatencySample[]; maxMs: number }>();
    for (const { name, samples, maxMs } of answers.flat()) {
      const known = events.get(name);
      if (known === undefined) {
        events.set(name, { samples, maxMs });
        continue;
      }
      const bySecond = new Map(known.samples.map(({ at, ms }) => [at, ms]));
      for (const { at, ms } of samples) bySecond.set(at, Math.max(ms, bySecond.get(at) ?? 0));
      known.samples = Array.from(bySecond, ([at, ms]) => ({ at, ms })).sort((a, b) => a.at - b.at);
      known.maxMs = Math.max(known.maxMs, maxMs);
    }
    write(out, events);
  });
}

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

function advice({ server: { latency } }: Client, events: EventsByName): string {
  if (latency.thresholdMs === Infinity) {
    return 'I\'m sorry, Dave, I can\'t do that. Latency monitoring is disabled in this instance. You may use "CONFIG SET latency-monitor-threshold <milliseconds>." in order to enable it.\n';
  }
  if (events.size === 0) {
    return 'No latency spike was observed since the last LATENCY RESET.\n';
  }
  const lines = ['Latency spikes were observed:', ''];
  let number = 0;
  for (const [name, { samples, maxMs }] of events) {
    const mean = samples.reduce((sum, { ms }) => sum + ms, 0) / samples.length;
    lines.push(
      `${++number}. ${name}: ${samples.length} latency spikes (average ${mean.toFixed(0)} ms). Worst all time event ${maxMs} ms.`,
    );
  }
  lines.push('', 'SLOWLOG GET shows the commands, and /metrics what else kept the thread.');
  return `${lines.join('\n')}\n`;
}

function writeHistograms(histograms: ReadonlyMap<string, LatencyHistogram>, out: RespWriter): void {
  out.map(histograms.size);
  for (const [name, latencies] of histograms) {
    const bounds = latencies.cumulative();
    out.text(name);
    out.map(2);
    out.text('calls');
    out.integer(latencies.total);
    out.text('histogram_usec');
    out.map(bounds.length);
    for (const [bound, count] of bounds) {
      out.integer(bound);
      out.integer(count);
    }
  }
}

const subcommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'latest',
    arity: 2,
    since: '2.8.13',
    summary: 'Returns the latest latency samples for all events.',
    complexity: 'O(1)',
    handle(client, _args, reply) {
      return ofAllNodes(client, reply, (out, events) => {
        out.array(events.size);
        for (const [name, { samples, maxMs }] of events) {
          const last = samples.at(-1)!;
          out.array(4);
          out.text(name);
          out.integer(last.at);
          out.integer(last.ms);
          out.integer(maxMs);
        }
      });
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
    handle(client, args, reply) {
      const event = args.text(2);
      return ofAllNodes(client, reply, (out, events) => {
        const samples = events.get(event)?.samples ?? [];
        out.array(samples.length);
        for (const { at, ms } of samples) {
          out.array(2);
          out.integer(at);
          out.integer(ms);
        }
      });
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
    handle(client, args, reply) {
      const names: string[] = [];
      for (let i = 2; i < args.count; i++) names.push(args.text(i));
      return askWide(client, 'resetLatency', { names }, reply, (out, { answers }) => {
        out.integer(allNames(answers).length);
      });
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
    handle(client, args, reply) {
      const name = args.text(2);
      return ofAllNodes(client, reply, (out, events) => {
        const event = events.get(name);
        if (event !== undefined) out.verbatim(graphOf(name, event.samples));
        else out.error(`ERR No samples available for event '${name}'`);
      });
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
      return ofAllNodes(client, reply, (out, events) => out.verbatim(advice(client, events)));
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
      return askWide(client, 'latencyHistograms', { names }, reply, (out, { answers }) => {
        const histograms = new Map<string, LatencyHistogram>();
        for (const { name, counts } of answers.flat()) {
          const histogram = histograms.get(name) ?? new LatencyHistogram();
          histogram.addAll(counts);
          histograms.set(name, histogram);
        }
        writeHistograms(histograms, out);
      });
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
