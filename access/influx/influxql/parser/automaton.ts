// RE2's lazy automaton over the program that re2js compiles. re2js has a driver of its own, but
// that may use 8 MB a pattern, and has no bound on time. This one has a bound on memory, counts the
// work of building states, and never leaves the automaton for another engine. It uses fields of
// re2js that are in its types, but not in its documentation: the version is pinned, and
// regexp.test.ts compares both drivers.

import type { RE2JS } from 're2js';
import type { TextMatcher } from '../ast.ts';
import { QueryError } from '../result.ts';
import { matchWork } from './match-work.ts';

type Dfa = ReturnType<RE2JS['re2']>['dfa'];

/** The parts of re2js's states that are used. */
interface State {
  /** By class of character. */
  readonly next: readonly (State | null)[] | null;
  readonly nfaStates: ArrayLike<number>;
  readonly isMatch: boolean;
}

/** Characters of a text that a pattern is tried on; InfluxDB keeps strings of up to 64 kB. */
export const maxMatchedLength = 1024 * 1024;

/** Memory for the states of one automaton, by the size of its program. */
const bytesPerInstruction = 2048;
const fewestBytes = 64 * 1024;
const mostBytes = 1024 * 1024;
/** Cost of a step besides the instructions it follows. */
const stepCost = 16;

const unanchored = 0;
const endOfText = -1;
const startOfText = {
  /** EMPTY_BEGIN_LINE and EMPTY_BEGIN_TEXT. */
  context: () => 5,
};

export class Automaton implements TextMatcher {
  readonly maxBytes: number;
  readonly #pattern: RE2JS;
  /** Made for the first text. */
  #dfa: Dfa | undefined;
  #start: State | undefined;

  constructor(pattern: RE2JS) {
    this.#pattern = pattern;
    const wanted = pattern.re2().prog.numInst() * bytesPerInstruction;
    this.maxBytes = Math.min(Math.max(wanted, fewestBytes), mostBytes);
  }

  /** Memory in states now. */
  get heldBytes(): number {
    return this.#dfa === undefined ? 0 : this.maxBytes - this.#dfa.memBudget;
  }

  /** Throws `QueryError` for a text that is too long, and when it would take too long. */
  test(text: string): boolean {
    if (text.length > maxMatchedLength) {
      throw new QueryError(
        `regular expression on a string of more than ${maxMatchedLength} characters`,
      );
    }
    const dfa = (this.#dfa ??= this.#open());
    let state = (this.#start ??= dfa.start(startOfText, 0) as State);
    const { latin1Class } = dfa;
    for (let i = 0; i < text.length; i++) {
      let rune = text.charCodeAt(i);
      let charClass: number;
      if (rune <= 0xff) charClass = latin1Class[rune]!;
      else {
        rune = text.codePointAt(i)!;
        if (rune > 0xffff) i++;
        charClass = dfa.runeClass(rune);
      }
      state = state.next?.[charClass] ?? this.#step(dfa, state, charClass, rune);
      if (state.isMatch) return true;
    }
    return (state.next?.[dfa.numClasses] ?? this.#step(dfa, state, dfa.numClasses, endOfText))
      .isMatch;
  }

  #open(): Dfa {
    const { dfa } = this.#pattern.re2();
    dfa.stateBudget = this.maxBytes;
    dfa.memBudget = this.maxBytes;
    return dfa;
  }

  /** A step that was not taken before, or is not kept any more. */
  #step(dfa: Dfa, state: State, charClass: number, rune: number): State {
    matchWork.add(state.nfaStates.length + stepCost);
    const next = dfa.step(state, charClass, rune, unanchored) as State | null;
    if (next !== null) return next;
    // There is no memory for another state: all states except this one are dropped.
    this.#start = undefined;
    const kept = dfa.resetCache(state) as State | null;
    const again = kept && (dfa.step(kept, charClass, rune, unanchored) as State | null);
    if (again === null) throw new QueryError('regular expression takes too much memory');
    return again;
  }
}
