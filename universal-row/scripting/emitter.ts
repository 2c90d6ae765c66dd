// Lua's syntax tree as JavaScript source, in two forms: plain functions, and generators that yield when their slice is
// used up. Nothing of the script's own text gets into the source but string literals, as JSON writes them.

import type { Call, Expression, FunctionBody, Local, MethodCall, Statement } from './ast.ts';
import { frameUnitBytes, type Site } from './machine.ts';

/** Names that mean the same in every run of a script: the emitter binds them once. */
export interface ConstantNames {
  has(name: string): boolean;
  /** Whether the library `name` has the function. */
  hasFunction(name: string, field: string): boolean;
}

interface Emitted {
  readonly source: string;
  readonly sites: readonly Site[];
}

interface FunctionFrame {
  temporaries: number;
  mostTemporaries: number;
}

type Operand = { readonly js: string; readonly isNumber: boolean };

const arithmeticOperators = new Set(['+', '-', '*', '/', '%', '^']);

/**
 * The body of a function of (S, T, P, Y, E, Z): the machine, `LuaTable`, `Pending`, the iterators of pairs and ipairs,
 * no values, sites. It returns the script's main function.
 */
export function emit(
  main: FunctionBody,
  chunk: string,
  isStepping: boolean,
  names: ConstantNames,
): Emitted {
  return new Emitter(chunk, isStepping, names).emit(main);
}

class Emitter {
  readonly #sites: Site[] = [];
  readonly #siteNumbers = new Map<string, number>();
  readonly #constants = new Map<string, string>();
  readonly #chunk: string;
  readonly #isStepping: boolean;
  readonly #names: ConstantNames;
  #frame: FunctionFrame = { temporaries: 0, mostTemporaries: 0 };
  #unique = 0;

  constructor(chunk: string, isStepping: boolean, names: ConstantNames) {
    this.#chunk = chunk;
    this.#isStepping = isStepping;
    this.#names = names;
  }

  emit(main: FunctionBody): Emitted {
    const code = this.#function(main);
    const constants = Array.from(this.#constants, ([path, name]) => `const ${name}=${path};`);
    const source = `"use strict";${constants.join('')}\nreturn ${code};`;
    return { source, sites: this.#sites };
  }

  // ---- names

  #site(line: number, first?: string, second?: string): string {
    const key = `${line} ${first} ${second}`;
    let number = this.#siteNumbers.get(key);
    if (number === undefined) {
      number = this.#sites.length;
      this.#siteNumbers.set(key, number);
      this.#sites.push({ chunk: this.#chunk, line, first, second });
    }
    return `Z[${number}]`;
  }

  #temporary(): string {
    const frame = this.#frame;
    const number = frame.temporaries++;
    frame.mostTemporaries = Math.max(frame.mostTemporaries, frame.temporaries);
    return `t${number}`;
  }

  #fresh(): string {
    return `u${this.#unique++}`;
  }

  #constant(path: string): string {
    let name = this.#constants.get(path);
    if (name === undefined) this.#constants.set(path, (name = `c${this.#constants.size}`));
    return name;
  }

  /** What error texts call an expression. */
  #described(e: Expression): string | undefined {
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

  // ---- functions and statements

  #function(body: FunctionBody): string {
    const outer = this.#frame;
    const { isVararg } = body.scope;
    const frame = { temporaries: 0, mostTemporaries: 0 };
    this.#frame = frame;
    const code = this.#statements(body.body);
    const temporaries = Array.from({ length: frame.mostTemporaries }, (_, i) => `t${i}`);
    this.#frame = outer;
    const parameters = body.parameters.map(localName);
    if (isVararg) parameters.push('...V');
    // W is the size of its frame.
    const size = 192 + 10 * (body.scope.locals + temporaries.length);
    const entry =
      `const W=${Math.ceil(size / frameUnitBytes)};` +
      `if((S.d+=W)>S.dmax||--S.n<0){S.enter();${this.#isStepping ? this.#pause() : ''}}` +
      `S.calls[S.d]=S.at;`;
    const declared = temporaries.length > 0 ? `let ${temporaries.join()};` : '';
    const end = endsWithReturn(body.body) ? '' : 'S.d-=W;return E;';
    const inner = `{${entry}${declared}\n${code}${end}}`;
    const list = parameters.join();
    return this.#isStepping ? `(function*(${list})${inner})` : `((${list})=>${inner})`;
  }

  #pause(): string {
    return 'yield;S.resumed();';
  }

  #backEdge(): string {
    return this.#isStepping ? `if(--S.n<0){${this.#pause()}}` : 'if(--S.n<0)S.tick();';
  }

  #statements(list: readonly Statement[]): string {
    let code = '';
    for (const statement of list) {
      const before = this.#frame.temporaries;
      code += `${this.#statement(statement)}\n`;
      this.#frame.temporaries = before;
    }
    return code;
  }

  #statement(s: Statement): string {
    switch (s.kind) {
      case 'localDeclaration':
        return this.#localDeclaration(s.locals, s.values);
      case 'localFunction':
        return `let ${localName(s.local)};${localName(s.local)}=${this.#function(s.body)};`;
      case 'assign':
        return this.#assign(s.targets, s.values);
      case 'callStatement':
        return `${this.#call(s.call)};`;
      case 'do':
        return `{${this.#statements(s.body)}}`;
      case 'while':
        return `while(${this.#condition(s.condition)}){${this.#backEdge()}${this.#statements(s.body)}}`;
      case 'repeat': {
        const body = this.#statements(s.body);
        const until = this.#condition(s.condition);
        const last = s.body.at(-1)?.kind;
        const isOver = last === 'return' || last === 'break';
        return `while(true){${this.#backEdge()}${body}${isOver ? '' : `if(${until})break;`}}`;
      }
      case 'if':
        return this.#if(s);
      case 'numericFor':
        return this.#numericFor(s);
      case 'genericFor':
        return this.#genericFor(s);
      case 'return':
        return this.#return(s.values);
      case 'break':
        return 'break;';
    }
  }

  #if(s: Extract<Statement, { kind: 'if' }>): string {
    let code = '';
    s.branches.forEach(({ condition, body }, i) => {
      const test = this.#condition(condition);
      code += `${i === 0 ? '' : 'else '}if(${test}){${this.#statements(body)}}`;
    });
    return s.otherwise === undefined ? code : `${code}else{${this.#statements(s.otherwise)}}`;
  }

  #localDeclaration(locals: readonly Local[], values: readonly Expression[]): string {
    const last = values.at(-1);
    const isOpen = last !== undefined && isMulti(last) && locals.length >= values.length;
    if (isOpen && !(locals.length === values.length)) {
      const list = this.#fresh();
      const heads = values.slice(0, -1).map((e, i) => `${localName(locals[i]!)}=${this.#value(e)}`);
      const rest = locals.slice(values.length - 1);
      const tails = rest.map((l, i) => `${localName(l)}=${list}[${i}]`);
      const listed = `${list}=S.list(${this.#multi(last)})`;
      return `let ${[...heads, listed, ...tails].join()};`;
    }
    const parts: string[] = [];
    values.forEach((e, i) => {
      const local = locals[i];
      if (local !== undefined) parts.push(`${localName(local)}=${this.#value(e)}`);
      else parts.push(`${this.#fresh()}=${this.#value(e)}`);
    });
    for (const local of locals.slice(values.length)) parts.push(localName(local));
    return `let ${parts.join()};`;
  }

  #assign(targets: readonly Expression[], values: readonly Expression[]): string {
    if (targets.length === 1 && values.length === 1) {
      return `${this.#store(targets[0]!, this.#value(values[0]!))};`;
    }
    let code = '';
    // Objects and keys first, then values, then the assignments from the last to the first.
    const stores = targets.map((target) => {
      if (target.kind !== 'index') return target;
      const object = this.#fresh();
      const key = this.#fresh();
      code += `const ${object}=${this.#value(target.object)},${key}=${this.#value(target.key)};`;
      return { target, object, key };
    });
    const names: string[] = [];
    values.forEach((e, i) => {
      const name = this.#fresh();
      if (i === values.length - 1 && isMulti(e) && targets.length > values.length) {
        code += `const ${name}=S.list(${this.#multi(e)});`;
        for (let k = i; k < targets.length; k++) names.push(`${name}[${k - i}]`);
      } else {
        code += `const ${name}=${this.#value(e)};`;
        names.push(name);
      }
    });
    for (let i = stores.length - 1; i >= 0; i--) {
      const to = stores[i]!;
      const value = names[i] ?? 'undefined';
      if ('object' in to && 'target' in to) {
        const site = this.#site(to.target.line, this.#described(to.target.object));
        code += `${this.#setIndex(to.object, to.key, value, site)};`;
      } else code += `${this.#store(to, value)};`;
    }
    return `{${code}}`;
  }

  #store(target: Expression, value: string): string {
    if (target.kind === 'local') return `${localName(target.local)}=${value}`;
    if (target.kind === 'global') {
      return this.#setIndex(
        'S.globals',
        JSON.stringify(target.name),
        value,
        this.#site(target.line),
      );
    }
    if (target.kind !== 'index') throw new TypeError('not assignable');
    const object = this.#value(target.object);
    const site = this.#site(target.line, this.#described(target.object));
    return this.#setIndex(object, this.#value(target.key), value, site);
  }

  #setIndex(object: string, key: string, value: string, site: string): string {
    return this.#later(`S.setIndex(${object},${key},${value},${site})`);
  }

  #numericFor(s: Extract<Statement, { kind: 'numericFor' }>): string {
    const bound = (e: Expression, what: string): string => {
      const { js, isNumber } = this.#operand(e);
      return isNumber ? js : `S.loopNumber(${js},"${what}",${this.#site(s.line)})`;
    };
    const limit = this.#fresh();
    const step = this.#fresh();
    const constantStep = s.step === undefined ? 1 : constantNumber(s.step);
    const counter = s.variable.isAssigned ? this.#fresh() : localName(s.variable);
    let heads = `${counter}=${bound(s.start, 'initial value')},${limit}=${bound(s.limit, 'limit')}`;
    if (constantStep === undefined) heads += `,${step}=${bound(s.step!, 'step')}`;
    const by = constantStep === undefined ? step : `(${constantStep})`;
    let test = `(${by}>0?${counter}<=${limit}:${limit}<=${counter})`;
    if (constantStep !== undefined) {
      test = constantStep > 0 ? `${counter}<=${limit}` : `${limit}<=${counter}`;
    }
    const copy = s.variable.isAssigned ? `let ${localName(s.variable)}=${counter};` : '';
    const body = this.#statements(s.body);
    return `for(let ${heads};${test};${counter}+=${by}){${this.#backEdge()}${copy}${body}}`;
  }

  #genericFor(s: Extract<Statement, { kind: 'genericFor' }>): string {
    const list = this.#fresh();
    const [f, state, control, at, isRest] = [1, 2, 3, 4, 5].map(() => this.#fresh());
    const [first, second, ...others] = s.variables.map(localName);
    const site = this.#site(s.line);
    const key = first!;
    const value = second ?? this.#fresh();
    const body = this.#statements(s.body);
    const result = this.#fresh();
    const next =
      `S.at=${site};const ${result}=S.list(${this.#later(`S.callee(${f},${site})(${state},${control})`)});` +
      `${key}=${result}[0];${value}=${result}[1];` +
      others.map((name, i) => `${name}=${result}[${i + 2}];`).join('') +
      `if(${key}===undefined)break;${control}=${key};`;
    // pairs and ipairs are walked here, without a call and an array for each step.
    return (
      `{const ${list}=S.list(${this.#values(s.values)});` +
      `const ${f}=${list}[0],${state}=${list}[1];let ${control}=${list}[2],${at}=0,${isRest}=false;` +
      `const k${at}=${f}===Y.next&&${control}===undefined&&${state} instanceof T?1:${f}===Y.inext&&${control}===0&&${state} instanceof T?2:0;` +
      `while(true){${this.#backEdge()}let ${[key, value, ...others].join()};` +
      `if(k${at}===1){if(!${isRest}){${at}=${state}.seek(${at});if(${at}<0){${isRest}=true;${at}=0;}}` +
      `if(${isRest}){${at}=${state}.seekRest(${at});if(${at}<0)break;${key}=${state}.restKey(${at});${value}=${state}.restValue(${at});}` +
      `else{${key}=${at}+1;${value}=${state}.list[${at}];}${at}++;}` +
      `else if(k${at}===2){${value}=${state}.get(++${at});if(${value}===undefined)break;${key}=${at};}` +
      `else{${next}}\n${body}}}`
    );
  }

  #return(values: readonly Expression[]): string {
    const only = values.length === 1 ? values[0]! : undefined;
    if (values.length === 0) return 'S.d-=W;return E;';
    const result = only === undefined ? this.#values(values) : this.#multi(only);
    const name = this.#fresh();
    return `{const ${name}=${result};S.d-=W;return ${name};}`;
  }

  // ---- expressions

  /** All values of a list, as what a function returns: one, or an array. */
  #values(list: readonly Expression[]): string {
    const last = list.at(-1)!;
    if (list.length === 1) return this.#multi(last);
    const front = list.slice(0, -1).map((e) => this.#value(e));
    if (isMulti(last)) return `S.join([${front.join()}],${this.#multi(last)})`;
    return `[${[...front, this.#value(last)].join()}]`;
  }

  /** All values of an expression: one, or an array. */
  #multi(e: Expression): string {
    if (e.kind === 'vararg') return 'V';
    return e.kind === 'call' || e.kind === 'method' ? this.#call(e) : this.#value(e);
  }

  /** A result that may be a generator, in the stepping form. */
  #later(js: string): string {
    if (!this.#isStepping) return js;
    const t = this.#temporary();
    return `((${t}=${js}) instanceof P?yield*${t}:${t})`;
  }

  #value(e: Expression): string {
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
        const t = this.#temporary();
        return `((${t}=${this.#call(e)}) instanceof Array?${t}[0]:${t})`;
      }
      case 'function':
        return this.#function(e);
      case 'table':
        return this.#table(e);
      case 'binary':
        return this.#binary(e);
      case 'unary':
        return this.#unary(e);
      case 'paren':
        return this.#value(e.inner);
    }
  }

  #global(name: string, line: number): string {
    const text = JSON.stringify(name);
    if (this.#names.has(name)) return this.#constant(`S.globals.get(${text})`);
    return `S.global(${text},${this.#site(line)})`;
  }

  /** A function of a library, which no script can change. */
  #libraryFunction(e: Expression): string | undefined {
    if (e.kind === 'global' && this.#names.hasFunction('_G', e.name)) {
      return this.#global(e.name, e.line);
    }
    if (e.kind !== 'index' || e.object.kind !== 'global' || e.key.kind !== 'string') {
      return undefined;
    }
    const { name } = e.object;
    if (!this.#names.hasFunction(name, e.key.value)) return undefined;
    return this.#constant(
      `S.globals.get(${JSON.stringify(name)}).get(${JSON.stringify(e.key.value)})`,
    );
  }

  #index(e: Extract<Expression, { kind: 'index' }>): string {
    const known = this.#libraryFunction(e);
    if (known !== undefined) return known;
    const site = this.#site(e.line, this.#described(e.object));
    const object = this.#value(e.object);
    return this.#later(`S.index(${object},${this.#value(e.key)},${site})`);
  }

  #table(e: Extract<Expression, { kind: 'table' }>): string {
    const last = e.items.at(-1);
    const fields = e.fields.map(({ key, value }) => `${this.#value(key)},${this.#value(value)}`);
    const site = this.#site(e.line);
    const items =
      last !== undefined && isMulti(last)
        ? `S.join([${e.items
            .slice(0, -1)
            .map((item) => this.#value(item))
            .join()}],${this.#multi(last)})`
        : `[${e.items.map((item) => this.#value(item)).join()}]`;
    return `S.table(${items},${fields.length === 0 ? 'undefined' : `[${fields.join()}]`},${site})`;
  }

  /** A call with all its results. */
  #call(e: Call | MethodCall): string {
    const before: string[] = [];
    let callee: string;
    const site = this.#site(e.line, this.#described(e.kind === 'call' ? e.callee : e));
    if (e.kind === 'method') {
      const object = this.#temporary();
      const from = this.#site(e.line, this.#described(e.object));
      const method = this.#temporary();
      const found = this.#later(`S.index(${object},${JSON.stringify(e.name)},${from})`);
      const put = `${object}=${this.#value(e.object)},${method}=${found}`;
      callee = `(${put},S.at=${site},typeof ${method}==="function"?${method}:S.callee(${method},${site}))`;
      before.push(object);
    } else {
      const known = this.#libraryFunction(e.callee);
      if (known === undefined) {
        const t = this.#temporary();
        callee = `(${t}=${this.#value(e.callee)},S.at=${site},typeof ${t}==="function"?${t}:S.callee(${t},${site}))`;
      } else callee = `(S.at=${site},${known})`;
    }
    return this.#later(this.#applied(callee, before, e.args, site));
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
      const list = [...before, ...args.map((arg) => this.#value(arg))];
      return `${callee}(${list.join()})`;
    }
    const front = [...before, ...args.slice(0, -1).map((arg) => this.#value(arg))];
    if (isMulti(last)) {
      return `${callee}(${[...front, `...S.spread(${this.#multi(last)},${site})`].join()})`;
    }
    const t = this.#temporary();
    return `${callee}(${[...front, `(${t}=${this.#value(last)},S.at=${site},${t})`].join()})`;
  }

  #operand(e: Expression): Operand {
    const inner = e.kind === 'paren' ? e.inner : e;
    if (inner.kind === 'number') return { js: numberLiteral(inner.value), isNumber: true };
    if (inner.kind === 'local') {
      const { local } = inner;
      return { js: localName(local), isNumber: local.isLoopNumber && !local.isAssigned };
    }
    return { js: this.#value(e), isNumber: false };
  }

  /** Puts an operand where it can be named twice. */
  #held(e: Expression): { name: string; first: string; isNumber: boolean } {
    const { js, isNumber } = this.#operand(e);
    if (isNumber || /^L\d+$/.test(js)) return { name: js, first: js, isNumber };
    const t = this.#temporary();
    return { name: t, first: `(${t}=${js})`, isNumber };
  }

  #binary(e: Extract<Expression, { kind: 'binary' }>): string {
    const { op } = e;
    if (op === 'and' || op === 'or') {
      const t = this.#temporary();
      const falsy = `(${t}=${this.#value(e.left)})===undefined||${t}===false`;
      const right = this.#value(e.right);
      return op === 'and' ? `(${falsy}?${t}:${right})` : `(${falsy}?${right}:${t})`;
    }
    const site = this.#site(e.line, this.#described(e.left), this.#described(e.right));
    if (op === '..') {
      const left = this.#value(e.left);
      return this.#later(`S.concat(${left},${this.#value(e.right)},${site})`);
    }
    if (!arithmeticOperators.has(op)) return this.#comparison(e, site);
    const a = this.#held(e.left);
    const b = this.#held(e.right);
    let fast = `${a.name}${op}${b.name}`;
    if (op === '%') fast = `${a.name}-Math.floor(${a.name}/${b.name})*${b.name}`;
    else if (op === '^') fast = `(${a.name})**${b.name}`;
    const slow = this.#later(`S.arithmetic("${op}",${a.name},${b.name},${site})`);
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
        const left = this.#value(e.left);
        return `(${left}${op === '==' ? '===' : '!=='}${this.#value(e.right)})`;
      }
      const a = this.#held(e.left);
      const b = this.#held(e.right);
      const slow = this.#later(`S.equals(${a.name},${b.name},${site})`);
      const equal = `(${a.first}===${b.first}||${a.name} instanceof T&&${slow})`;
      return op === '==' ? equal : `(!${equal})`;
    }
    const a = this.#held(e.left);
    const b = this.#held(e.right);
    const isSwapped = op === '>' || op === '>=';
    const method = op === '<' || op === '>' ? 'less' : 'lessEqual';
    const [x, y] = isSwapped ? [b.name, a.name] : [a.name, b.name];
    const slow = this.#later(`S.${method}(${x},${y},${site})`);
    return this.#guarded(a, b, `${a.name}${op}${b.name}`, slow);
  }

  #unary(e: Extract<Expression, { kind: 'unary' }>): string {
    const site = this.#site(e.line, this.#described(e.operand));
    if (e.op === 'not') return `(!${this.#condition(e.operand)})`;
    if (e.op === '#') return `S.length(${this.#value(e.operand)},${site})`;
    const a = this.#held(e.operand);
    if (a.isNumber) return `(-${a.name})`;
    const slow = this.#later(`S.negate(${a.name},${site})`);
    return `(typeof ${a.first}==="number"?-${a.name}:${slow})`;
  }

  /** Whether an expression is true, as JavaScript has it; in parentheses. */
  #condition(e: Expression): string {
    const inner = e.kind === 'paren' ? e.inner : e;
    if (inner.kind === 'binary') {
      const { op } = inner;
      if (op === 'and' || op === 'or') {
        const join = op === 'and' ? '&&' : '||';
        return `(${this.#condition(inner.left)}${join}${this.#condition(inner.right)})`;
      }
      if (!arithmeticOperators.has(op) && op !== '..') return this.#value(inner);
    }
    if (inner.kind === 'unary' && inner.op === 'not') return this.#value(inner);
    if (inner.kind === 'true') return '(true)';
    if (inner.kind === 'false' || inner.kind === 'nil') return '(false)';
    const t = this.#temporary();
    return `((${t}=${this.#value(e)})!==undefined&&${t}!==false)`;
  }
}

function localName(local: Local): string {
  return `L${local.id}`;
}

function isMulti(e: Expression): boolean {
  return e.kind === 'call' || e.kind === 'method' || e.kind === 'vararg';
}

function isLiteral(e: Expression): boolean {
  return ['nil', 'true', 'false', 'number', 'string'].includes(e.kind);
}

/** Evaluating it makes no call. */
function isQuiet(e: Expression): boolean {
  return isLiteral(e) || e.kind === 'local' || e.kind === 'function';
}

function endsWithReturn(body: readonly Statement[]): boolean {
  return body.at(-1)?.kind === 'return';
}

function constantNumber(e: Expression): number | undefined {
  if (e.kind === 'number') return e.value;
  if (e.kind === 'unary' && e.op === '-' && e.operand.kind === 'number') return -e.operand.value;
  return undefined;
}

function numberLiteral(value: number): string {
  if (value !== value) return 'NaN';
  if (value === Infinity) return 'Infinity';
  return value < 0 || Object.is(value, -0) ? `(${value === 0 ? '-0' : value})` : String(value);
}
