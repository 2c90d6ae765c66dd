// The options of SET and GETEX: when to write, and until when the value is to live.

import type { Arguments } from '../../../arguments.ts';
import { type CommandError, syntaxError } from '../../../errors.ts';
import { milliseconds, positiveExpiryTime, seconds } from './expiry-time.ts';

const ex = 1;
const px = 2;
const exat = 4;
const pxat = 8;
const keepTtl = 16;
const persist = 32;
const relative = ex | px;

export class ValueOptions {
  nx = false;
  xx = false;
  get = false;
  #lifetime = 0;
  #timeWord = 0;

  get keepTtl(): boolean {
    return this.#lifetime === keepTtl;
  }
  get persist(): boolean {
    return this.#lifetime === persist;
  }
  get hasTime(): boolean {
    return this.#timeWord !== 0;
  }
  /** A point in time, not a time to live. */
  get hasPointInTime(): boolean {
    return (this.#lifetime & (exat | pxat)) !== 0;
  }

  /** Reads the arguments from `from` on: options of SET, or else of GETEX. */
  parse(args: Arguments, from: number, ofSet: boolean): void {
    this.nx = false;
    this.xx = false;
    this.get = false;
    this.#lifetime = 0;
    this.#timeWord = 0;
    for (let i = from; i < args.count; i++) {
      if (ofSet && !this.xx && args.is(i, 'NX')) this.nx = true;
      else if (ofSet && !this.nx && args.is(i, 'XX')) this.xx = true;
      else if (ofSet && args.is(i, 'GET')) this.get = true;
      else if (ofSet && this.#may(keepTtl) && args.is(i, 'KEEPTTL')) this.#lifetime = keepTtl;
      else if (!ofSet && this.#may(persist) && args.is(i, 'PERSIST')) this.#lifetime = persist;
      else {
        const option = timeOption(args, i);
        if (option === 0 || !this.#may(option) || i + 1 === args.count) throw syntaxError;
        this.#lifetime = option;
        this.#timeWord = ++i;
      }
    }
  }

  /** The time given, in milliseconds since 1970; 0 when there is none. */
  expireAt(args: Arguments, now: number, outOfRange: CommandError): number {
    if (this.#timeWord === 0) return 0;
    const unit = (this.#lifetime & (ex | exat)) !== 0 ? seconds : milliseconds;
    const base = (this.#lifetime & relative) !== 0 ? now : 0;
    return positiveExpiryTime(args, this.#timeWord, unit, base, outOfRange);
  }

  /** One kind of lifetime only, though Redis lets the same one be given again. */
  #may(option: number): boolean {
    return this.#lifetime === 0 || this.#lifetime === option;
  }
}

function timeOption(args: Arguments, word: number): number {
  if (args.is(word, 'EX')) return ex;
  if (args.is(word, 'PX')) return px;
  if (args.is(word, 'EXAT')) return exat;
  if (args.is(word, 'PXAT')) return pxat;
  return 0;
}
