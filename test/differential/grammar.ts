// Command lines from a pattern, as a manual writes them:
//
//   SET string value [NX|XX] [EX seconds|KEEPTTL]
//
//   CAPITALS   themselves           [a|b]   one of these, or nothing
//   word       what `kinds` makes   <a|b>   one of these
//                                   x* x**  once to four times; sometimes very often

import type { Random } from '../support/random.ts';
import type { Word } from '../support/resp-client.ts';

/** State of a line that later words depend on. */
export interface LineState {
  /** How many keys the last count announced. */
  keyCount: number;
}

export type Kind = (random: Random, line: LineState) => Word | Word[];

type Node =
  | { is: 'literal'; text: string }
  | { is: 'kind'; make: Kind }
  | { is: 'choice'; optional: boolean; options: Node[][] }
  | { is: 'repeat'; node: Node; many: boolean };

export class Pattern {
  readonly text: string;
  readonly #nodes: Node[];

  constructor(text: string, kinds: Readonly<Record<string, Kind>>) {
    this.text = text;
    const tokens = text.match(/[[\]<>|]|\*{1,2}|[^\s[\]<>|*]+/g) ?? [];
    const parser = new Parser(tokens, kinds);
    this.#nodes = parser.sequence();
    if (!parser.done) throw new Error(`not a pattern: ${text}`);
  }

  make(random: Random): Word[] {
    const words: Word[] = [];
    const line: LineState = { keyCount: 1 };
    for (const node of this.#nodes) expand(node, random, line, words);
    return words;
  }
}

class Parser {
  readonly #tokens: string[];
  readonly #kinds: Readonly<Record<string, Kind>>;
  #at = 0;

  constructor(tokens: string[], kinds: Readonly<Record<string, Kind>>) {
    this.#tokens = tokens;
    this.#kinds = kinds;
  }

  get done(): boolean {
    return this.#at === this.#tokens.length;
  }

  sequence(): Node[] {
    const nodes: Node[] = [];
    for (;;) {
      const token = this.#tokens[this.#at];
      if (token === undefined || token === ']' || token === '>' || token === '|') return nodes;
      this.#at++;
      if (token.startsWith('*')) {
        const node = nodes.pop();
        if (node === undefined) throw new Error('nothing to repeat');
        nodes.push({ is: 'repeat', node, many: token === '**' });
      } else if (token === '[' || token === '<') {
        nodes.push(this.#choice(token));
      } else if (/^[a-z]/.test(token)) {
        const make = this.#kinds[token];
        if (make === undefined) throw new Error(`no such kind of word: ${token}`);
        nodes.push({ is: 'kind', make });
      } else {
        nodes.push({ is: 'literal', text: token });
      }
    }
  }

  #choice(opening: string): Node {
    const options = [this.sequence()];
    while (this.#tokens[this.#at] === '|') {
      this.#at++;
      options.push(this.sequence());
    }
    if (this.#tokens[this.#at++] !== (opening === '[' ? ']' : '>')) throw new Error('not closed');
    return { is: 'choice', optional: opening === '[', options };
  }
}

function expand(node: Node, random: Random, line: LineState, words: Word[]): void {
  switch (node.is) {
    case 'literal':
      words.push(random.chance(0.1) ? node.text.toLowerCase() : node.text);
      break;
    case 'kind': {
      const made = node.make(random, line);
      if (Array.isArray(made)) words.push(...made);
      else words.push(made);
      break;
    }
    case 'choice':
      if (node.optional && random.chance(0.6)) break;
      for (const each of random.pick(node.options)) expand(each, random, line, words);
      break;
    case 'repeat': {
      let times = 1 + random.below(4);
      if (node.many && random.chance(0.03)) times = 100 + random.below(200);
      for (let i = 0; i < times; i++) expand(node.node, random, line, words);
    }
  }
}
