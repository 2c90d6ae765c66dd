// Translates Lua expressions to JavaScript source; emitter.ts builds statements from them.

import type { Call, Expression, FunctionBody, Local, MethodCall } from './ast.ts';
import type { Site } from './script-state.ts';

/** Names that mean the same in every run of a script: the emitter binds them once. */
export interface ConstantNames {
  has(name: string): boolean;
  /** Whether the library `name` has the function. */
  hasFunction(name: string, field: string): boolean;
  /** The main function has globals of its own, for loading a library. */
  readonly isLibrary: boolean;
}

interface FunctionFrame {
  temporaries: number;
  mostTemporaries: number;
  /** True for the main function. */
  readonly isMain: boolean;
}

type Operand = { readonly js: string; readonly isNumber: boolean };

const arithmeticOperators = new Set(['+', '-', '*', '/', '%', '^']);

export abstract class ExpressionEmitter {
  protected readonly sites: Site[] = [];
  readonly #siteNumbers = new Map<string, number>();
  protected readonly constants = new Map<string, string>();
  protected readonly chunk: string;
  protected readonly isStepping: boolean;
  protected readonly names: ConstantNames;
  protected frame: FunctionFrame = { temporaries: 0, mostTemporaries: 0, isMain: false };
  #unique = 0;

  constructor(chunk: string, isStepping: boolean, names: ConstantNames) {
    this.chunk = chunk;
    this.isStepping = isStepping;
    this.names = names;
  }

  protected abstract function(body: FunctionBody): string;

  // ---- names

  protected site(line: number, first?: string, second?: string): string {
    const key = `${line} ${first} ${second}`;
    let number = this.#siteNumbers.get(key);
    if (number === undefined) {
      number = this.sites.length;
      this.#siteNumbers.set(key, number);
      this.sites.push({ chunk: this.chunk, line, first, second });
    }
    return `Z[${number}]`;
  }

  protected temporary(): string {
    const frame = this.frame;
    const number = frame.temporaries++;
    frame.mostTemporaries = Math.max(frame.mostTemporaries, frame.temporaries);
    return `t${number}`;
  }

  protected fresh(): string {
    return `u${this.#unique++}`;
  }

  #constant(path: string): string {
    let name = this.constants.get(path);
    if (name === undefined) this.constants.set(path, (name = `c${this.constants.size}`));
    return name;
  }

  /** Description of an expression in error texts. */
  protected described(e: Expression): string | undefined {
    switch (e.kind) {
      case 'local':
        return `${e.isUpvalue ? 'upvalue' : 'local'} '${e.local.name}'`;
      case 'global':
        return `global '${e.name}'`;
      case 'index':
        return e.key.kind === 'string' ? `field '${e.key.value.slice(0, 60)}'` : undefined;
      case 'method':
        return `method '${e.name}'`;
      default:
        return undefined;
    }
  }
  // ---- expressions

  /** All values of a list in the form a function returns: one, or an array. */
  protected values(list: readonly Expression[]): string {
    const last = list.at(-1)!;
    if (list.length === 1) return this.multi(last);
    const front = list.slice(0, -1).map((e) => this.value(e));
    if (isMulti(last)) return `S.join([${front.join()}],${this.multi(last)})`;
    return `[${[...front, this.value(last)].join()}]`;
  }

  /** All values of an expression: one, or an array. */
  protected multi(e: Expression): string {
    if (e.kind === 'vararg') return 'V';
    return e.kind === 'call' || e.kind === 'method' ? this.call(e) : this.value(e);
  }

  /** A result that may be a generator, in the stepping form. */
  protected later(js: string): string {
    if (!this.isStepping) return js;
    const t = this.temporary();
    return `((${t}=${js}) instanceof P?yield*${t}:${t})`;
  }

  protected value(e: Expression): string {
    switch (e.kind) {
      case 'nil':
        return 'undefined';
      case 'true':
      case 'false':
        return e.kind;
      case 'number':
        return numberLiteral(e.value);
      case 'string':
        return JSON.stringify(e.value);
      case 'vararg':
        return 'V[0]';
      case 'local':
        return localName(e.local);
      case 'global':
        return this.#global(e.name, e.line);
      case 'index':
        return this.#index(e);
      case 'call':
      case 'method': {
        const t = this.temporary();
        return `((${t}=${this.call(e)}) instanceof Array?${t}[0]:${t})`;
      }
      case 'function':
        return this.function(e);
      case 'table':
        return this.#table(e);
      case 'binary':
        return this.#binary(e);
      case 'unary':
        return this.#unary(e);
      case 'paren':
        return this.value(e.inner);
    }
  }

  #global(name: string, line: number): string {
    const text = JSON.stringify(name);
    if (this.#isLoading) return `S.index(Y.atLoad,${text},${this.site(line)})`;
    if (this.names.has(name)) return this.#constant(`S.globals.get(${text})`);
    return `S.global(${text},${this.site(line)})`;
  }

  /** Whether the code runs during the loading of a library. */
  get #isLoading(): boolean {
    return this.names.isLibrary && this.frame.isMain;
  }

  /** A function of a library, which no script can change. */
  #libraryFunction(e: Expression): string | undefined {
    if (this.#isLoading) return undefined;
    if (e.kind === 'global' && this.names.hasFunction('_G', e.name)) {
      return this.#global(e.name, e.line);
    }
    if (e.kind !== 'index' || e.object.kind !== 'global' || e.key.kind !== 'string') {
      return undefined;
    }
    const { name } = e.object;
    if (!this.names.hasFunction(name, e.key.value)) return undefined;
    return this.#constant(
      `S.globals.get(${JSON.stringify(name)}).get(${JSON.stringify(e.key.value)})`,
    );
  }

  #index(e: Extract<Expression, { kind: 'index' }>): string {
    const known = this.#libraryFunction(e);
    if (known !== undefined) return known;
    const site = this.site(e.line, this.described(e.object));
    const object = this.value(e.object);
    return this.later(`S.index(${object},${this.value(e.key)},${site})`);
  }

  #table(e: Extract<Expression, { kind: 'table' }>): string {
    const last = e.items.at(-1);
    const fields = e.fields.map(({ key, value }) => `${this.value(key)},${this.value(value)}`);
    const site = this.site(e.line);
    const items =
      last !== undefined && isMulti(last)
        ? `S.join([${e.items
            .slice(0, -1)
            .map((item) => this.value(item))
            .join()}],${this.multi(last)})`
        : `[${e.items.map((item) => this.value(item)).join()}]`;
    return `S.table(${items},${fields.length === 0 ? 'undefined' : `[${fields.join()}]`},${site})`;
  }

  /** A call with all its results. */
  protected call(e: Call | MethodCall): string {
    const before: string[] = [];
    let callee: string;
    const site = this.site(e.line, this.described(e.kind === 'call' ? e.callee : e));
    if (e.kind === 'method') {
      const object = this.temporary();
      const from = this.site(e.line, this.described(e.object));
      const method = this.temporary();
      const found = this.later(`S.index(${object},${JSON.stringify(e.name)},${from})`);
      const put = `${object}=${this.value(e.object)},${method}=${found}`;
      callee = `(${put},S.at=${site},typeof ${method}==="function"?${method}:S.callee(${method},${site}))`;
      before.push(object);
    } else {
      const known = this.#libraryFunction(e.callee);
      if (known === undefined) {
        const t = this.temporary();
        callee = `(${t}=${this.value(e.callee)},S.at=${site},typeof ${t}==="function"?${t}:S.callee(${t},${site}))`;
      } else callee = `(S.at=${site},${known})`;
    }
    return this.later(this.#applied(callee, before, e.args, site));
  }

  /** The place of the call is noted last, when its arguments are known: they may be calls. */
  #applied(
    callee: string,
    before: readonly string[],
    args: readonly Expression[],
    site: string,
  ): string {
    const last = args.at(-1);
    if (last === undefined || args.every(isQuiet)) {
      const list = [...before, ...args.map((arg) => this.value(arg))];
      return `${callee}(${list.join()})`;
    }
    const front = [...before, ...args.slice(0, -1).map((arg) => this.value(arg))];
    if (isMulti(last)) {
      return `${callee}(${[...front, `...S.spread(${this.multi(last)},${site})`].join()})`;
    }
    const t = this.temporary();
    return `${callee}(${[...front, `(${t}=${this.value(last)},S.at=${site},${t})`].join()})`;
  }

  protected operand(e: Expression): Operand {
    const inner = e.kind === 'paren' ? e.inner : e;
    if (inner.kind === 'number') return { js: numberLiteral(inner.value), isNumber: true };
    if (inner.kind === 'local') {
      const { local } = inner;
      return { js: localName(local), isNumber: local.isLoopNumber && !local.isAssigned };
    }
    return { js: this.value(e), isNumber: false };
  }

  /** Puts an operand where it can be named twice. */
  #held(e: Expression): { name: string; first: string; isNumber: boolean } {
    const { js, isNumber } = this.operand(e);
    if (isNumber || /^L\d+$/.test(js)) return { name: js, first: js, isNumber };
    const t = this.temporary();
    return { name: t, first: `(${t}=${js})`, isNumber };
  }

  #binary(e: Extract<Expression, { kind: 'binary' }>): string {
    const { op } = e;
    if (op === 'and' || op === 'or') {
      const t = this.temporary();
      const falsy = `(${t}=${this.value(e.left)})===undefined||${t}===false`;
      const right = this.value(e.right);
      return op === 'and' ? `(${falsy}?${t}:${right})` : `(${falsy}?${right}:${t})`;
    }
    const site = this.site(e.line, this.described(e.left), this.described(e.right));
    if (op === '..') {
      const left = this.value(e.left);
      return this.later(`S.concat(${left},${this.value(e.right)},${site})`);
    }
    if (!arithmeticOperators.has(op)) return this.#comparison(e, site);
    const a = this.#held(e.left);
    const b = this.#held(e.right);
    let fast = `${a.name}${op}${b.name}`;
    if (op === '%') fast = `${a.name}-Math.floor(${a.name}/${b.name})*${b.name}`;
    else if (op === '^') fast = `(${a.name})**${b.name}`;
    const slow = this.later(`S.arithmetic("${op}",${a.name},${b.name},${site})`);
    return this.#guarded(a, b, fast, slow);
  }

  /** `fast` if both operands are numbers. They are evaluated in order, the second even if the first is none. */
  #guarded(
    a: { name: string; first: string; isNumber: boolean },
    b: { name: string; first: string; isNumber: boolean },
    fast: string,
    slow: string,
  ): string {
    const isFirst = (one: typeof a): string =>
      one.isNumber ? '' : `typeof ${one.name}==="number"`;
    const setup = [a, b].filter((one) => one.first !== one.name).map((one) => one.first);
    const tests = [isFirst(a), isFirst(b)].filter((test) => test !== '');
    if (tests.length === 0) return `(${fast})`;
    const evaluated = setup.length === 0 ? '' : `${setup.join()},`;
    return `(${evaluated}${tests.join('&&')}?${fast}:${slow})`;
  }

  #comparison(e: Extract<Expression, { kind: 'binary' }>, site: string): string {
    const { op } = e;
    if (op === '==' || op === '~=') {
      if (isLiteral(e.left) || isLiteral(e.right)) {
        const left = this.value(e.left);
        return `(${left}${op === '==' ? '===' : '!=='}${this.value(e.right)})`;
      }
      const a = this.#held(e.left);
      const b = this.#held(e.right);
      const slow = this.later(`S.equals(${a.name},${b.name},${site})`);
      const equal = `(${a.first}===${b.first}||${a.name} instanceof T&&${slow})`;
      return op === '==' ? equal : `(!${equal})`;
    }
    const a = this.#held(e.left);
    const b = this.#held(e.right);
    const isSwapped = op === '>' || op === '>=';
    const method = op === '<' || op === '>' ? 'less' : 'lessEqual';
    const [x, y] = isSwapped ? [b.name, a.name] : [a.name, b.name];
    const slow = this.later(`S.${method}(${x},${y},${site})`);
    return this.#guarded(a, b, `${a.name}${op}${b.name}`, slow);
  }

  #unary(e: Extract<Expression, { kind: 'unary' }>): string {
    const site = this.site(e.line, this.described(e.operand));
    if (e.op === 'not') return `(!${this.condition(e.operand)})`;
    if (e.op === '#') return `S.length(${this.value(e.operand)},${site})`;
    const a = this.#held(e.operand);
    if (a.isNumber) return `(-${a.name})`;
    const slow = this.later(`S.negate(${a.name},${site})`);
    return `(typeof ${a.first}==="number"?-${a.name}:${slow})`;
  }

  /** Whether an expression is true, as JavaScript has it; in parentheses. */
  protected condition(e: Expression): string {
    const inner = e.kind === 'paren' ? e.inner : e;
    if (inner.kind === 'binary') {
      const { op } = inner;
      if (op === 'and' || op === 'or') {
        const join = op === 'and' ? '&&' : '||';
        return `(${this.condition(inner.left)}${join}${this.condition(inner.right)})`;
      }
      if (!arithmeticOperators.has(op) && op !== '..') return this.value(inner);
    }
    if (inner.kind === 'unary' && inner.op === 'not') return this.value(inner);
    if (inner.kind === 'true') return '(true)';
    if (inner.kind === 'false' || inner.kind === 'nil') return '(false)';
    const t = this.temporary();
    return `((${t}=${this.value(e)})!==undefined&&${t}!==false)`;
  }
}

export function localName(local: Local): string {
  return `L${local.id}`;
}

export function isMulti(e: Expression): boolean {
  return e.kind === 'call' || e.kind === 'method' || e.kind === 'vararg';
}

function isLiteral(e: Expression): boolean {
  return ['nil', 'true', 'false', 'number', 'string'].includes(e.kind);
}

/** Evaluating it makes no call. */
function isQuiet(e: Expression): boolean {
  return isLiteral(e) || e.kind === 'local' || e.kind === 'function';
}

export function constantNumber(e: Expression): number | undefined {
  if (e.kind === 'number') return e.value;
  if (e.kind === 'unary' && e.op === '-' && e.operand.kind === 'number') return -e.operand.value;
  return undefined;
}

function numberLiteral(value: number): string {
  if (value !== value) return 'NaN';
  if (value === Infinity) return 'Infinity';
  return value < 0 || Object.is(value, -0) ? `(${value === 0 ? '-0' : value})` : String(value);
}
