// RE2 expressions for JavaScript. What JavaScript's own matcher can do in bounded time it does, in the
// same syntax throughout: groups that do not capture, characters as \u{...}, case spelled out in
// classes. Expressions on which it could backtrack for very long go to the linear matcher instead, from
// the text length on at which they could.

import type { Pattern } from '../ast.ts';
import { LinearMatcher } from './regexp-linear.ts';
import {
  type Assertion,
  type CharSet,
  parseRegexp,
  PatternError,
  type RegexpNode,
} from './regexp-syntax.ts';

export { PatternError } from './regexp-syntax.ts';

/** log2 of the steps that backtracking may need at worst: some tens of milliseconds. */
const maxStepBits = 22;

/** Characters once repetitions are written out. */
const maxSize = 200_000;
const maxLinearSize = 20_000;

/** Compiles an expression of RE2's syntax. Throws `PatternError`. */
export function compilePattern(source: string): Pattern {
  const node = parseRegexp(source);
  const size = sizeOf(node);
  const limit = safeLength(node);
  if (size > maxSize || (Number.isFinite(limit) && size > maxLinearSize)) {
    throw new PatternError('expression too large', source);
  }
  const js = translate(node);
  try {
    return {
      source,
      regexp: Number.isFinite(limit) ? new GuardedRegExp(js, node, limit) : new RegExp(js, 'u'),
    };
  } catch (error) {
    if (error instanceof SyntaxError) throw new PatternError('expression too large', source);
    throw error;
  }
}

/** Made for `test` only, which is linear for texts longer than backtracking can be trusted with. */
class GuardedRegExp extends RegExp {
  readonly #native: RegExp;
  readonly #node: RegexpNode;
  readonly #limit: number;
  #linear: LinearMatcher | undefined;

  constructor(js: string, node: RegexpNode, limit: number) {
    super(js, 'u');
    this.#native = new RegExp(js, 'u');
    this.#node = node;
    this.#limit = limit;
  }

  override test(text: string): boolean {
    if (text.length <= this.#limit) return this.#native.test(text);
    this.#linear ??= new LinearMatcher(this.#node);
    return this.#linear.test(text);
  }
}

function sizeOf(node: RegexpNode): number {
  switch (node.kind) {
    case 'chars':
    case 'assert':
      return 1;
    case 'concat':
    case 'alternate':
      return node.parts.reduce((sum, part) => sum + sizeOf(part), 1);
    case 'repeat':
      return 1 + sizeOf(node.body) * Math.max(1, Number.isFinite(node.max) ? node.max : node.min);
  }
}

/** Ways through a node on a text of n characters: 2^bits * n^degree. */
interface Ways {
  readonly bits: number;
  readonly degree: number;
}

/** The longest text on which backtracking is no danger, Infinity when it never is. */
function safeLength(node: RegexpNode): number {
  const { bits, degree } = waysOf(node);
  // A match may begin anywhere, unless it must be at the start.
  const total = degree + (isAnchored(node) ? 0 : 1);
  if (!Number.isFinite(bits) || bits > maxStepBits) return 0;
  if (total <= 1 && bits < maxStepBits / 2) return Number.POSITIVE_INFINITY;
  return Math.floor(2 ** ((maxStepBits - bits) / total));
}

const impossible: Ways = { bits: Number.POSITIVE_INFINITY, degree: 0 };

function waysOf(node: RegexpNode): Ways {
  switch (node.kind) {
    case 'chars':
    case 'assert':
      return { bits: 0, degree: 0 };
    case 'concat': {
      const all = node.parts.map(waysOf);
      return { bits: sum(all, 'bits'), degree: sum(all, 'degree') };
    }
    case 'alternate': {
      const all = node.parts.map(waysOf);
      const ways = all.reduce((total, { bits }) => total + 2 ** bits, 0);
      return { bits: Math.log2(ways), degree: Math.max(...all.map(({ degree }) => degree)) };
    }
    case 'repeat': {
      const { bits, degree } = waysOf(node.body);
      if (!Number.isFinite(node.max)) {
        // One way through the body, or the ways multiply with every turn.
        return bits === 0 && degree === 0 ? { bits: 0, degree: 1 } : impossible;
      }
      const choices = Math.log2(node.max - node.min + 1);
      return { bits: choices + node.max * bits, degree: node.max * degree };
    }
  }
}

function sum(all: readonly Ways[], key: keyof Ways): number {
  return all.reduce((total, ways) => total + ways[key], 0);
}

function isAnchored(node: RegexpNode): boolean {
  switch (node.kind) {
    case 'assert':
      return node.what === 'start';
    case 'concat':
      return node.parts.length > 0 && isAnchored(node.parts[0]!);
    case 'alternate':
      return node.parts.every(isAnchored);
    default:
      return false;
  }
}

const assertions: Readonly<Record<Assertion, string>> = {
  start: '^',
  end: '$',
  lineStart: '(?<![^\\n])',
  lineEnd: '(?![^\\n])',
  boundary: '\\b',
  noBoundary: '\\B',
};

function translate(node: RegexpNode): string {
  switch (node.kind) {
    case 'chars':
      return translateSet(node.set);
    case 'assert':
      return assertions[node.what];
    case 'concat':
      return node.parts.map((part) => grouped(part, part.kind === 'alternate')).join('');
    case 'alternate':
      return node.parts.map(translate).join('|');
    case 'repeat':
      return grouped(node.body, node.body.kind !== 'chars') + countOf(node.min, node.max);
  }
}

function grouped(node: RegexpNode, needed: boolean): string {
  return needed ? `(?:${translate(node)})` : translate(node);
}

function countOf(min: number, max: number): string {
  if (Number.isFinite(max)) return max === 1 && min === 0 ? '?' : `{${min},${max}}`;
  return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`;
}

function translateSet({ ranges, properties, negated }: CharSet): string {
  const [only] = ranges;
  if (only !== undefined && ranges.length === 1 && properties.length === 0 && !negated) {
    if (only[0] === only[1]) return character(only[0]);
  }
  const items = ranges.map(([first, last]) =>
    first === last ? character(first) : `${character(first)}-${character(last)}`,
  );
  return `[${negated ? '^' : ''}${items.join('')}${properties.join('')}]`;
}

function character(code: number): string {
  const char = String.fromCodePoint(code);
  return /^[A-Za-z0-9_]$/.test(char) ? char : `\\u{${code.toString(16)}}`;
}
