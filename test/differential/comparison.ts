// Runs one stream of commands on two servers and finds the first answer that differs, and then the shortest
// run of commands that makes it differ.

import { setTimeout as sleep } from 'node:timers/promises';
import type { RespClient, Word } from '../support/resp-client.ts';
import { type RespValue, show } from '../support/resp-value.ts';
import type { Step } from './generator.ts';
import { agree, type Rule } from './rules.ts';

export interface Difference {
  /** Which of the steps, from 0. */
  at: number;
  ours: string;
  theirs: string;
}

const longestWaitMs = 20_000;

const reset: readonly (readonly Word[])[] = [['DISCARD'], ['UNWATCH'], ['SELECT', 0], ['FLUSHALL']];

export class Comparison {
  readonly #ours: RespClient;
  readonly #theirs: RespClient;
  #before: { ours: RespValue; theirs: RespValue } | undefined;
  /** Rules of the commands queued for EXEC. */
  #queued: Rule[] = [];

  constructor(ours: RespClient, theirs: RespClient) {
    this.#ours = ours;
    this.#theirs = theirs;
  }

  async reset(): Promise<void> {
    this.#before = undefined;
    this.#queued = [];
    await Promise.all([this.#ours.pipeline(reset), this.#theirs.pipeline(reset)]);
  }

  /** Sends the steps in one pipeline each. */
  async run(steps: readonly Step[]): Promise<Difference | undefined> {
    for (let from = 0; from < steps.length; ) {
      const pause = steps.findIndex((step, i) => i >= from && step.pauseMs !== undefined);
      const to = pause < 0 ? steps.length : pause + 1;
      const difference = await this.#pipeline(steps, from, to);
      if (difference !== undefined) return difference;
      await sleep(steps[to - 1]!.pauseMs ?? 0);
      from = to;
    }
    return undefined;
  }

  async #pipeline(
    steps: readonly Step[],
    from: number,
    to: number,
  ): Promise<Difference | undefined> {
    const commands = steps.slice(from, to).map(({ words }) => words);
    const [ours, theirs] = await this.#answers(steps.slice(from, to), commands);
    for (let i = 0; i < commands.length; i++) {
      const pair = { ours: ours[i]!, theirs: theirs[i]! };
      if (
        !agree(this.#ruleFor(steps[from + i]!, pair.theirs), pair.ours, pair.theirs, this.#before)
      ) {
        return { at: from + i, ours: show(pair.ours), theirs: show(pair.theirs) };
      }
      this.#before = pair;
    }
    return undefined;
  }

  async #answers(
    steps: readonly Step[],
    commands: readonly Word[][],
  ): Promise<[RespValue[], RespValue[]]> {
    const answered = { ours: 0, theirs: 0 };
    this.#ours.onReply = () => answered.ours++;
    this.#theirs.onReply = () => answered.theirs++;
    const silence = new AbortController();
    const complain = sleep(longestWaitMs, undefined, { signal: silence.signal }).then(() => {
      const asked = steps.slice(0, answered.ours + 1).map(showStep);
      throw new Error(
        `no answer (ours ${answered.ours}, theirs ${answered.theirs}) to the last of\n${asked.join('\n')}`,
      );
    });
    try {
      return await Promise.race([
        Promise.all([this.#ours.pipeline(commands), this.#theirs.pipeline(commands)]),
        complain,
      ]);
    } finally {
      complain.catch(() => undefined);
      silence.abort();
    }
  }

  #ruleFor({ words, rule }: Step, reply: RespValue): Rule {
    if (reply.type === '+' && reply.text === 'QUEUED') {
      this.#queued.push(rule);
      return 'exact';
    }
    const name = String(words[0]).toLowerCase();
    if (name === 'multi' && reply.type === '+') this.#queued = [];
    if (name !== 'exec') return rule;
    const exec = this.#queued;
    this.#queued = [];
    return { exec };
  }

  /** All keys with all they hold, in the databases the runs use. */
  async contents(): Promise<Difference | undefined> {
    const steps: Step[] = [];
    for (const db of [0, 1, 2]) {
      const keys: Step[] = [
        { words: ['SELECT', db], rule: 'exact' },
        { words: ['KEYS', '*'], rule: 'unordered' },
      ];
      const difference = await this.run(keys);
      if (difference !== undefined) return difference;
      const found = this.#before!.theirs;
      const names = 'items' in found ? found.items : [];
      const all = names.map((item) => Buffer.from('text' in item ? item.text : '', 'latin1'));
      steps.push(keys[0]!, ...all.flatMap(contentsOf));
    }
    steps.push({ words: ['SELECT', 0], rule: 'exact' });
    return await this.run(steps);
  }

  /** The fewest of `steps` whose last still gives a different answer, on empty servers. */
  async shrink(steps: readonly Step[]): Promise<Step[]> {
    let best = steps.slice();
    const fails = async (candidate: readonly Step[]) => {
      await this.reset();
      const difference = await this.run(candidate);
      // Another step may fail on its own account: a draw without what it was to draw from.
      if (difference === undefined || candidate[difference.at] !== steps.at(-1)) return undefined;
      return candidate.slice(0, difference.at + 1);
    };
    for (let length = 1; length < steps.length; length *= 2) {
      const shorter = await fails(steps.slice(-length));
      if (shorter === undefined) continue;
      best = shorter;
      break;
    }
    for (let size = best.length >> 1; size >= 1; size >>= 1) {
      for (let at = 0; at + size < best.length; ) {
        const without = [...best.slice(0, at), ...best.slice(at + size)];
        const shorter = await fails(without);
        if (shorter === undefined) at += size;
        else best = shorter;
      }
    }
    await this.reset();
    return best;
  }
}

/** All types are asked for: those that do not fit answer with the same error on both. */
function contentsOf(key: Buffer): Step[] {
  return [
    { words: ['TYPE', key], rule: 'exact' },
    { words: ['PTTL', key], rule: 'time' },
    ...valueOf(key),
    { words: ['HGETALL', key], rule: 'pairs' },
    { words: ['XRANGE', key, '-', '+'], rule: 'exact' },
    { words: ['XINFO', 'GROUPS', key], rule: 'exact' },
    { words: ['LRANGE', key, 0, -1], rule: 'exact' },
    { words: ['SMEMBERS', key], rule: 'unordered' },
    { words: ['ZRANGE', key, 0, -1, 'WITHSCORES'], rule: 'scores' },
  ];
}

function valueOf(key: Buffer): Step[] {
  if (!key.toString('latin1').includes('sketch')) return [{ words: ['GET', key], rule: 'exact' }];
  // All but the cardinality that Redis's PFCOUNT leaves there, and ours does not.
  return [
    { words: ['PFCOUNT', key], rule: 'exact' },
    { words: ['GETRANGE', key, 0, 4], rule: 'exact' },
    { words: ['GETRANGE', key, 16, -1], rule: 'exact' },
  ];
}

export function showStep({ words }: Step): string {
  return words
    .map((word) => {
      const text = word instanceof Uint8Array ? Buffer.from(word).toString('latin1') : String(word);
      return /^[!#-&(-~]+$/.test(text) ? text : show({ type: '$', text });
    })
    .join(' ');
}
