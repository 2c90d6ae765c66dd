// Lua's syntax tree as JavaScript source, in two forms: plain functions, and generators that yield when their slice is
// used up. Nothing of the script's own text gets into the source but string literals, as JSON writes them.

import type { Expression, FunctionBody, Local, Statement } from './ast.ts';
import {
  type ConstantNames,
  constantNumber,
  ExpressionEmitter,
  isMulti,
  localName,
} from './expression-emitter.ts';
import { frameUnitBytes, type Site } from './script-state.ts';

interface Emitted {
  readonly source: string;
  readonly sites: readonly Site[];
}

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
class Emitter extends ExpressionEmitter {
  #main: FunctionBody | undefined;

  emit(main: FunctionBody): Emitted {
    this.#main = main;
    const code = this.function(main);
    const constants = Array.from(this.constants, ([path, name]) => `const ${name}=${path};`);
    const source = `"use strict";${constants.join('')}\nreturn ${code};`;
    return { source, sites: this.sites };
  }

  // ---- functions and statements

  protected function(body: FunctionBody): string {
    const outer = this.frame;
    const { isVararg } = body.scope;
    const isMain = this.#main === body;
    const frame = { temporaries: 0, mostTemporaries: 0, isMain };
    this.frame = frame;
    const code = this.#statements(body.body);
    const temporaries = Array.from({ length: frame.mostTemporaries }, (_, i) => `t${i}`);
    this.frame = outer;
    const parameters = body.parameters.map(localName);
    if (isVararg) parameters.push('...V');
    // W is the size of its frame.
    const size = 192 + 10 * (body.scope.locals + temporaries.length);
    const entry =
      `const W=${Math.ceil(size / frameUnitBytes)};` +
      `if((S.d+=W)>S.dmax||--S.n<0){S.enter();${this.isStepping ? this.#pause() : ''}}` +
      `S.calls[S.d]=S.at;`;
    const declared = temporaries.length > 0 ? `let ${temporaries.join()};` : '';
    const end = endsWithReturn(body.body) ? '' : 'S.d-=W;return E;';
    const inner = `{${entry}${declared}\n${code}${end}}`;
    const list = parameters.join();
    return this.isStepping ? `(function*(${list})${inner})` : `((${list})=>${inner})`;
  }

  #pause(): string {
    return 'yield;S.resumed();';
  }

  #backEdge(): string {
    return this.isStepping ? `if(--S.n<0){${this.#pause()}}` : 'if(--S.n<0)S.tick();';
  }

  #statements(list: readonly Statement[]): string {
    let code = '';
    for (const statement of list) {
      const before = this.frame.temporaries;
      code += `${this.#statement(statement)}\n`;
      this.frame.temporaries = before;
    }
    return code;
  }

  #statement(s: Statement): string {
    switch (s.kind) {
      case 'localDeclaration':
        return this.#localDeclaration(s.locals, s.values);
      case 'localFunction':
        return `let ${localName(s.local)};${localName(s.local)}=${this.function(s.body)};`;
      case 'assign':
        return this.#assign(s.targets, s.values);
      case 'callStatement':
        return `${this.call(s.call)};`;
      case 'do':
        return `{${this.#statements(s.body)}}`;
      case 'while':
        return `while(${this.condition(s.condition)}){${this.#backEdge()}${this.#statements(s.body)}}`;
      case 'repeat': {
        const body = this.#statements(s.body);
        const until = this.condition(s.condition);
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
      const test = this.condition(condition);
      code += `${i === 0 ? '' : 'else '}if(${test}){${this.#statements(body)}}`;
    });
    return s.otherwise === undefined ? code : `${code}else{${this.#statements(s.otherwise)}}`;
  }

  #localDeclaration(locals: readonly Local[], values: readonly Expression[]): string {
    const last = values.at(-1);
    const isOpen = last !== undefined && isMulti(last) && locals.length >= values.length;
    if (isOpen && !(locals.length === values.length)) {
      const list = this.fresh();
      const heads = values.slice(0, -1).map((e, i) => `${localName(locals[i]!)}=${this.value(e)}`);
      const rest = locals.slice(values.length - 1);
      const tails = rest.map((l, i) => `${localName(l)}=${list}[${i}]`);
      const listed = `${list}=S.list(${this.multi(last)})`;
      return `let ${[...heads, listed, ...tails].join()};`;
    }
    const parts: string[] = [];
    values.forEach((e, i) => {
      const local = locals[i];
      if (local !== undefined) parts.push(`${localName(local)}=${this.value(e)}`);
      else parts.push(`${this.fresh()}=${this.value(e)}`);
    });
    for (const local of locals.slice(values.length)) parts.push(localName(local));
    return `let ${parts.join()};`;
  }

  #assign(targets: readonly Expression[], values: readonly Expression[]): string {
    if (targets.length === 1 && values.length === 1) {
      return `${this.#store(targets[0]!, this.value(values[0]!))};`;
    }
    let code = '';
    // Objects and keys first, then values, then the assignments from the last to the first.
    const stores = targets.map((target) => {
      if (target.kind !== 'index') return target;
      const object = this.fresh();
      const key = this.fresh();
      code += `const ${object}=${this.value(target.object)},${key}=${this.value(target.key)};`;
      return { target, object, key };
    });
    const names: string[] = [];
    values.forEach((e, i) => {
      const name = this.fresh();
      if (i === values.length - 1 && isMulti(e) && targets.length > values.length) {
        code += `const ${name}=S.list(${this.multi(e)});`;
        for (let k = i; k < targets.length; k++) names.push(`${name}[${k - i}]`);
      } else {
        code += `const ${name}=${this.value(e)};`;
        names.push(name);
      }
    });
    for (let i = stores.length - 1; i >= 0; i--) {
      const to = stores[i]!;
      const value = names[i] ?? 'undefined';
      if ('object' in to && 'target' in to) {
        const site = this.site(to.target.line, this.described(to.target.object));
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
        this.site(target.line),
      );
    }
    if (target.kind !== 'index') throw new TypeError('not assignable');
    const object = this.value(target.object);
    const site = this.site(target.line, this.described(target.object));
    return this.#setIndex(object, this.value(target.key), value, site);
  }

  #setIndex(object: string, key: string, value: string, site: string): string {
    return this.later(`S.setIndex(${object},${key},${value},${site})`);
  }

  #numericFor(s: Extract<Statement, { kind: 'numericFor' }>): string {
    const bound = (e: Expression, what: string): string => {
      const { js, isNumber } = this.operand(e);
      return isNumber ? js : `S.loopNumber(${js},"${what}",${this.site(s.line)})`;
    };
    const limit = this.fresh();
    const step = this.fresh();
    const constantStep = s.step === undefined ? 1 : constantNumber(s.step);
    const counter = s.variable.isAssigned ? this.fresh() : localName(s.variable);
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
    const list = this.fresh();
    const [f, state, control, at, isRest] = [1, 2, 3, 4, 5].map(() => this.fresh());
    const [first, second, ...others] = s.variables.map(localName);
    const site = this.site(s.line);
    const key = first!;
    const value = second ?? this.fresh();
    const body = this.#statements(s.body);
    const result = this.fresh();
    const next =
      `S.at=${site};const ${result}=S.list(${this.later(`S.callee(${f},${site})(${state},${control})`)});` +
      `${key}=${result}[0];${value}=${result}[1];` +
      others.map((name, i) => `${name}=${result}[${i + 2}];`).join('') +
      `if(${key}===undefined)break;${control}=${key};`;
    // pairs and ipairs are walked here, without a call and an array for each step.
    return (
      `{const ${list}=S.list(${this.values(s.values)});` +
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
    const result = only === undefined ? this.values(values) : this.multi(only);
    const name = this.fresh();
    return `{const ${name}=${result};S.d-=W;return ${name};}`;
  }
}

function endsWithReturn(body: readonly Statement[]): boolean {
  return body.at(-1)?.kind === 'return';
}
