// An endless stream of commands from a seed.

import { Random } from '../support/random.ts';
import type { Word } from '../support/resp-client.ts';
import { allDraws, allLines, type Draw, type Line } from './commands.ts';
import type { Rule } from './rules.ts';
import { oddNumbers } from './words.ts';

// DBSIZE counts expired rows until they are removed, and which ones RANDOMKEY meets and removes is a draw.
const compared = allLines.filter(({ pattern }) => pattern.text !== 'DBSIZE');

export interface Step {
  words: Word[];
  rule: Rule;
  /** Milliseconds to let pass once it is answered, so that what expires has expired on both. */
  pauseMs?: number;
}

export class Generator {
  readonly #random: Random;
  readonly #ready: Step[] = [];

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  next(): Step {
    if (this.#ready.length === 0) this.#ready.push(...this.#more());
    return this.#ready.shift()!;
  }

  #more(): Step[] {
    const random = this.#random;
    if (random.chance(0.03)) return this.#transaction();
    if (random.chance(0.04)) return this.#draw(random.pick(allDraws));
    if (random.chance(0.002)) return this.#shortLife();
    if (random.chance(0.0005))
      return [step(random.pick(['FLUSHALL', 'FLUSHDB', 'FLUSHALL ASYNC']))];
    return this.#line();
  }

  #line(): Step[] {
    const random = this.#random;
    const line = random.pick(compared);
    // A few commands wait; too many would make the run as slow as they are.
    if (line.waits && random.chance(0.8)) return this.#line();
    const words = line.pattern.make(random);
    // A SCAN of less than everything, or COMMAND without more words, would answer in each server's own way; and
    // for a WAIT for more replicas than there are, redis-server waits for good.
    const fixed =
      line.rule === 'scan' ||
      line.rule === 'scan-pairs' ||
      /^(?:COMMAND|WAIT)$/i.test(String(words[0]));
    const alter = !fixed && random.chance(0.06);
    const altered = alter ? this.#alter(line, words) : words;
    const made = { words: endsEarly(altered) ? words : altered, rule: line.rule };
    // Redis's SORT also fails on an errno that an earlier command of the same tick has left: this clears it.
    return /^sort/i.test(String(words[0])) ? [step('ZADD missing XX 1 a'), made] : [made];
  }

  /** The line with a word left out, said twice, or something strange in it. */
  #alter(line: Line, words: Word[]): Word[] {
    const random = this.#random;
    const altered = words.slice();
    const at = 1 + random.below(Math.max(1, words.length - 1));
    if (random.chance(0.4)) altered.splice(at, 1);
    else if (random.chance(0.3)) altered.splice(at, 0, words[at] ?? 'more');
    else if (!line.waits) altered.splice(at, random.below(2), random.pick(oddNumbers));
    return altered;
  }

  #draw({ candidates, draw, removes }: Draw): Step[] {
    const words = draw.make(this.#random);
    const key = words[1];
    const from: Word[] =
      candidates === 'KEYS'
        ? ['KEYS', '*']
        : candidates === 'ZSCORES'
          ? ['ZRANGE', key!, 0, -1, 'WITHSCORES']
          : [candidates, key!];
    const rules: Readonly<Record<string, Step['rule']>> = { HGETALL: 'pairs', ZSCORES: 'scores' };
    const steps: Step[] = [
      { words: from, rule: rules[candidates] ?? 'unordered' },
      { words, rule: 'draw' },
    ];
    // Now the two hold different members: both start afresh.
    if (removes) steps.push({ words: ['SCARD', key!], rule: 'exact' }, step(['DEL', key!]));
    return steps;
  }

  #transaction(): Step[] {
    const random = this.#random;
    const steps: Step[] = [];
    if (random.chance(0.4)) {
      steps.push({ words: ['WATCH', ...this.#someKeys()], rule: 'exact' });
      for (let i = random.below(3); i > 0; i--) steps.push(...this.#line());
    }
    steps.push(step('MULTI'));
    for (let i = random.below(6); i > 0; i--) steps.push(...this.#line());
    steps.push(step(random.chance(0.1) ? 'DISCARD' : 'EXEC'));
    return steps;
  }

  #someKeys(): Word[] {
    const exists = allLines.find(({ pattern }) => pattern.text.startsWith('EXISTS'))!;
    return exists.pattern.make(this.#random).slice(1);
  }

  /** A key expires, and then commands meet what is left of it. */
  #shortLife(): Step[] {
    const keys = this.#someKeys();
    // In a transaction that is still open they would be queued, and run with no pause behind them.
    const steps = [step('DISCARD'), ...keys.map((key) => step(['PEXPIRE', key, 1]))];
    steps.push({ ...step('PING'), pauseMs: 5 });
    for (const key of keys) steps.push(step(['TYPE', key]), ...this.#line(), ...this.#line());
    return steps;
  }
}

/** Whether Redis may, by chance, take the second word for a subcommand although it goes on behind a zero byte. */
function endsEarly([name, second]: readonly Word[]): boolean {
  const isContainer = /^(?:xinfo|xgroup|object)$/i.test(String(name));
  return isContainer && second instanceof Uint8Array && second.includes(0);
}

function step(words: string | Word[]): Step {
  return { words: typeof words === 'string' ? words.split(' ') : words, rule: 'exact' };
}
