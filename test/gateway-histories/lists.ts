// What clients of a history did to lists, and what was answered: it must agree with the lists at the end.

import type { RespValue } from '../support/resp-value.ts';

/** An append or a read. Times are counted, not measured: each call and each answer has its own. */
interface Operation {
  readonly key: string;
  /** What was to be appended; undefined of a read. */
  readonly value: string | undefined;
  readonly call: number;
  readonly answer: number;
  /** What was answered: the length, or the elements. Undefined where there is nothing of it. */
  readonly result: string | undefined;
  readonly told: 'done' | 'notRun' | 'unknown';
}

export class Lists {
  readonly #done: Operation[] = [];
  #time = 0;

  /** Time of a call. */
  call(): number {
    return ++this.#time;
  }

  /** Undefined where the read was not answered. */
  read(key: string, call: number, answer: RespValue | undefined): Operation | undefined {
    if (answer?.type !== '*') return undefined;
    const result = answer.items.map((item) => named(textOf(item))).join();
    return this.#note({ key, value: undefined, call, result, told: 'done' });
  }

  append(key: string, value: string, call: number, answer: RespValue | undefined): Operation {
    const isNothing = answer?.type === 'nil array' || answer?.type === 'nil';
    const isRefused = answer?.type === '-' && /^(CLUSTERDOWN|EXECABORT)/.test(answer.text);
    const told = isNothing || isRefused ? 'notRun' : answer?.type === ':' ? 'done' : 'unknown';
    const result = answer?.type === ':' ? answer.text : undefined;
    return this.#note({ key, value, call, result, told });
  }

  #note(operation: Omit<Operation, 'answer'>): Operation {
    const noted = { ...operation, answer: ++this.#time };
    this.#done.push(noted);
    return noted;
  }

  get counts(): { acknowledged: number; unknown: number; reads: number } {
    const appends = this.#done.filter(({ value }) => value !== undefined);
    const acknowledged = appends.filter(({ result }) => result !== undefined).length;
    const reads = this.#done.length - appends.length;
    return { acknowledged, unknown: appends.length - acknowledged, reads };
  }

  /** `elements`: those of a list at the end. */
  check(elements: (key: string) => readonly string[]): void {
    const keys = new Set(this.#done.map(({ key }) => key));
    for (const key of keys) this.#checkList(key, elements(key).map(named));
  }

  #checkList(key: string, list: readonly string[]): void {
    const fail = (what: string, one?: Operation): never => {
      throw new Error(`${key}: ${what} ${JSON.stringify(one)} of ${list.join(' ').slice(-400)}`);
    };
    if (new Set(list).size !== list.length) fail('something is there twice');
    const known = this.#done.filter((one) => one.key === key);
    for (const one of known) {
      const { value, result } = one;
      if (value === undefined) {
        const read = result === '' ? [] : result!.split(',');
        if (read.some((element, i) => element !== list[i])) fail('not what was read', one);
      } else if (result !== undefined && list[Number(result) - 1] !== value) {
        fail('not where it was appended', one);
      } else if (one.told === 'notRun' && list.includes(value)) fail('was not run', one);
    }
    // What was answered before a call is before what that did, or saw.
    const answered = known
      .filter(({ result }) => result !== undefined)
      .sort((a, b) => a.answer - b.answer);
    for (const one of answered) {
      for (const before of answered) {
        if (before.answer > one.call) break;
        if (lengthOf(before) > lengthOf(one)) fail(`after ${JSON.stringify(before)}`, one);
      }
    }
  }
}

/** Elements that the list had, as was answered. */
export function lengthOf({ value, result }: Pick<Operation, 'value' | 'result'>): number {
  return value === undefined ? (result === '' ? 0 : result!.split(',').length) : Number(result);
}

/** The beginning of an element: what follows only takes room. */
function named(element: string): string {
  return element.replace(/x.*/, '');
}

function textOf(value: RespValue): string {
  return 'text' in value ? value.text : '';
}
