// Matching in time proportional to the text, whatever the expression: all ways through it are followed
// side by side, and the sets of places that were reached are kept for the next time (a lazy automaton).
// For expressions on which backtracking could take for ever.

import type { Assertion, CharSet, RegexpNode } from './regexp-syntax.ts';

/** Places of the automaton. `goto` and `or` are places. */
type Place =
  | { readonly kind: 'match' }
  | { readonly kind: 'chars'; readonly has: (code: number) => boolean; readonly goto: number }
  | { readonly kind: 'assert'; readonly what: Assertion; readonly goto: number }
  | { readonly kind: 'split'; readonly goto: number; or: number };

/** What stood before a position: as far as assertions go, that is all that counts. */
type Before = 'start' | 'newline' | 'word' | 'other';

/** Where one can be after a character, and what by the next one. */
interface State {
  readonly places: readonly number[];
  readonly before: Before;
  readonly next: Map<number, State | typeof matched>;
}

const matched = Symbol('matched');
const endOfText = -1;

/** Steps that are remembered before it starts afresh. */
const maxRemembered = 20_000;

export class LinearMatcher {
  readonly #places: Place[] = [{ kind: 'match' }];
  readonly #start: number;
  #states = new Map<string, State>();
  #remembered = 0;

  constructor(node: RegexpNode) {
    this.#start = this.#build(node, 0);
  }

  test(text: string): boolean {
    let state = this.#stateOf([], 'start');
    for (let i = 0; i < text.length; ) {
      const code = text.codePointAt(i)!;
      const next = this.#step(state, code);
      if (next === matched) return true;
      state = next;
      i += code > 0xffff ? 2 : 1;
    }
    return this.#step(state, endOfText) === matched;
  }

  #add(place: Place): number {
    return this.#places.push(place) - 1;
  }

  /** The place where `node` begins, given where to go on after it. */
  #build(node: RegexpNode, goto: number): number {
    switch (node.kind) {
      case 'chars':
        return this.#add({ kind: 'chars', has: membership(node.set), goto });
      case 'assert':
        return this.#add({ kind: 'assert', what: node.what, goto });
      case 'concat':
        return node.parts.reduceRight((next, part) => this.#build(part, next), goto);
      case 'alternate':
        return node.parts
          .map((part) => this.#build(part, goto))
          .reduceRight((or, start) => this.#add({ kind: 'split', goto: start, or }));
      case 'repeat':
        return this.#buildRepeat(node, goto);
    }
  }

  #buildRepeat(node: Extract<RegexpNode, { kind: 'repeat' }>, goto: number): number {
    let start = goto;
    if (Number.isFinite(node.max)) {
      for (let i = node.min; i < node.max; i++) {
        start = this.#add({ kind: 'split', goto: this.#build(node.body, start), or: goto });
      }
    } else {
      const loop: Place = { kind: 'split', goto, or: goto };
      start = this.#add(loop);
      loop.or = this.#build(node.body, start);
    }
    for (let i = 0; i < node.min; i++) start = this.#build(node.body, start);
    return start;
  }

  #step(state: State, code: number): State | typeof matched {
    const known = state.next.get(code);
    if (known !== undefined) return known;
    const next = this.#follow(state, code);
    if (++this.#remembered > maxRemembered) {
      this.#remembered = 0;
      this.#states = new Map();
    } else {
      state.next.set(code, next);
    }
    return next;
  }

  #follow(state: State, code: number): State | typeof matched {
    const seen = new Set<number>();
    const reached = new Set<number>();
    // A match may begin at any position.
    const pending = [...state.places, this.#start];
    for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
      if (seen.has(at)) continue;
      seen.add(at);
      const place = this.#places[at]!;
      switch (place.kind) {
        case 'match':
          return matched;
        case 'chars':
          if (code !== endOfText && place.has(code)) reached.add(place.goto);
          break;
        case 'assert':
          if (holds(place.what, state.before, code)) pending.push(place.goto);
          break;
        case 'split':
          pending.push(place.goto, place.or);
      }
    }
    return this.#stateOf(
      [...reached].sort((a, b) => a - b),
      beforeOf(code),
    );
  }

  #stateOf(places: readonly number[], before: Before): State {
    const key = `${before} ${places.join(' ')}`;
    let state = this.#states.get(key);
    if (state === undefined) {
      state = { places, before, next: new Map() };
      this.#states.set(key, state);
    }
    return state;
  }
}

function isWord(code: number): boolean {
  return code >= 0 && code < 0x80 && /\w/.test(String.fromCharCode(code));
}

function beforeOf(code: number): Before {
  if (code === 0x0a) return 'newline';
  return isWord(code) ? 'word' : 'other';
}

function holds(what: Assertion, before: Before, code: number): boolean {
  switch (what) {
    case 'start':
      return before === 'start';
    case 'lineStart':
      return before === 'start' || before === 'newline';
    case 'end':
      return code === endOfText;
    case 'lineEnd':
      return code === endOfText || code === 0x0a;
    case 'boundary':
      return (before === 'word') !== isWord(code);
    case 'noBoundary':
      return (before === 'word') === isWord(code);
  }
}

function membership(set: CharSet): (code: number) => boolean {
  const { ranges, negated } = set;
  const properties = set.properties.map((property) => new RegExp(property, 'u'));
  return (code) => {
    const inside =
      ranges.some(([first, last]) => code >= first && code <= last) ||
      properties.some((property) => property.test(String.fromCodePoint(code)));
    return inside !== negated;
  };
}
