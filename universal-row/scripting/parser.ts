// Lua 5.1's grammar, by recursive descent with Lua's own limits and error texts.

import type { BinaryOperator, Chunk, Expression, FunctionBody, Local, Statement } from './ast.ts';
import { Lexer } from './lexer.ts';
import { Scopes } from './scopes.ts';

const maxDepth = 200;

/** Left and right binding powers; `..` and `^` bind to the right. */
const powers: Record<BinaryOperator, readonly [left: number, right: number]> = {
  or: [1, 1],
  and: [2, 2],
  '<': [3, 3],
  '>': [3, 3],
  '<=': [3, 3],
  '>=': [3, 3],
  '~=': [3, 3],
  '==': [3, 3],
  '..': [5, 4],
  '+': [6, 6],
  '-': [6, 6],
  '*': [7, 7],
  '/': [7, 7],
  '%': [7, 7],
  '^': [10, 9],
};
const unaryPower = 8;

/** The tree of a program; throws `LuaSyntaxError`. */
export function parse(source: string, chunkName: string): Chunk {
  return new Parser(new Lexer(source, chunkName)).chunk();
}

class Parser {
  readonly #lexer: Lexer;
  readonly #scopes: Scopes;
  #depth = 0;

  constructor(lexer: Lexer) {
    this.#lexer = lexer;
    this.#scopes = new Scopes(lexer);
  }

  chunk(): Chunk {
    const lexer = this.#lexer;
    lexer.next();
    const body = this.#block();
    if (lexer.kind !== 'eof') lexer.fail(`'<eof>' expected`);
    const main: FunctionBody = {
      kind: 'function',
      scope: this.#scopes.current,
      parameters: [],
      body,
      line: 0,
    };
    return { main, localCount: this.#scopes.localCount };
  }

  // ---- tokens

  #take(text: string): boolean {
    if (!this.#lexer.is(text)) return false;
    this.#lexer.next();
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) this.#lexer.fail(`'${text}' expected`);
  }

  /** Expects the `end` of the block that `opener` began at `line`. */
  #expectClosing(text: string, opener: string, line: number): void {
    if (this.#take(text)) return;
    if (line === this.#lexer.line) this.#lexer.fail(`'${text}' expected`);
    this.#lexer.fail(`'${text}' expected (to close '${opener}' at line ${line})`);
  }

  #name(): string {
    const lexer = this.#lexer;
    if (lexer.kind !== 'name') lexer.fail(`'<name>' expected`);
    const { text } = lexer;
    lexer.next();
    return text;
  }

  #enter(): void {
    if (++this.#depth > maxDepth) this.#lexer.fail('chunk has too many syntax levels', false);
  }

  // ---- statements

  #block(): Statement[] {
    this.#enter();
    const { active } = this.#scopes.current;
    const before = active.length;
    const statements = this.#statements();
    active.length = before;
    this.#depth--;
    return statements;
  }

  #endsBlock(): boolean {
    const { kind, text } = this.#lexer;
    if (kind === 'eof') return true;
    return kind === 'keyword' && ['end', 'else', 'elseif', 'until'].includes(text);
  }

  #statements(): Statement[] {
    const statements: Statement[] = [];
    while (!this.#endsBlock()) {
      const isLast = this.#lexer.is('return') || this.#lexer.is('break');
      const statement = this.#statement();
      if (statement !== undefined) statements.push(statement);
      this.#take(';');
      if (isLast) break;
    }
    return statements;
  }

  #statement(): Statement {
    const lexer = this.#lexer;
    const { line } = lexer;
    if (lexer.kind === 'keyword') {
      switch (lexer.text) {
        case 'if':
          return this.#if(line);
        case 'while': {
          lexer.next();
          const condition = this.#expression();
          this.#expect('do');
          return { kind: 'while', condition, body: this.#loopBody('while', line) };
        }
        case 'do': {
          lexer.next();
          const body = this.#block();
          this.#expectClosing('end', 'do', line);
          return { kind: 'do', body };
        }
        case 'for':
          return this.#for(line);
        case 'repeat':
          return this.#repeat(line);
        case 'function':
          return this.#functionStatement(line);
        case 'local':
          lexer.next();
          return this.#take('function') ? this.#localFunction() : this.#local();
        case 'return':
          lexer.next();
          if (this.#endsBlock() || lexer.is(';')) return { kind: 'return', values: [] };
          return { kind: 'return', values: this.#expressions() };
        case 'break':
          lexer.next();
          if (this.#scopes.current.loops === 0) lexer.fail('no loop to break');
          return { kind: 'break' };
      }
    }
    return this.#expressionStatement();
  }

  /** Up to and with `end`. */
  #loopBody(opener: string, line: number): Statement[] {
    this.#scopes.current.loops++;
    const body = this.#block();
    this.#scopes.current.loops--;
    this.#expectClosing('end', opener, line);
    return body;
  }

  #if(line: number): Statement {
    const branches: { condition: Expression; body: Statement[] }[] = [];
    let otherwise: Statement[] | undefined;
    do {
      this.#lexer.next();
      const condition = this.#expression();
      this.#expect('then');
      branches.push({ condition, body: this.#block() });
    } while (this.#lexer.is('elseif'));
    if (this.#take('else')) otherwise = this.#block();
    this.#expectClosing('end', 'if', line);
    return { kind: 'if', branches, otherwise };
  }

  #repeat(line: number): Statement {
    this.#lexer.next();
    this.#enter();
    const { active } = this.#scopes.current;
    const before = active.length;
    this.#scopes.current.loops++;
    const body = this.#statements();
    this.#scopes.current.loops--;
    this.#expectClosing('until', 'repeat', line);
    // The condition sees the variables of the body.
    const condition = this.#expression();
    active.length = before;
    this.#depth--;
    return { kind: 'repeat', condition, body };
  }

  #for(line: number): Statement {
    const lexer = this.#lexer;
    lexer.next();
    const name = this.#name();
    if (lexer.is('=')) {
      lexer.next();
      const start = this.#expression();
      this.#expect(',');
      const limit = this.#expression();
      const step = this.#take(',') ? this.#expression() : undefined;
      this.#expect('do');
      const variable = this.#scopes.declare(name, true);
      const body = this.#forBody([variable], line);
      return { kind: 'numericFor', variable, start, limit, step, body, line };
    }
    if (!lexer.is(',') && !lexer.is('in')) lexer.fail(`'=' or 'in' expected`);
    const names = [name];
    while (this.#take(',')) names.push(this.#name());
    this.#expect('in');
    // Errors of calls of the iterator tell the line on which its list begins.
    const listLine = lexer.line;
    const values = this.#expressions();
    this.#expect('do');
    const variables = names.map((one) => this.#scopes.declare(one));
    const body = this.#forBody(variables, line);
    return { kind: 'genericFor', variables, values, body, line: listLine };
  }

  #forBody(variables: Local[], line: number): Statement[] {
    const { active } = this.#scopes.current;
    const before = active.length;
    this.#scopes.activate(...variables);
    const body = this.#loopBody('for', line);
    active.length = before;
    return body;
  }

  #functionStatement(line: number): Statement {
    const lexer = this.#lexer;
    lexer.next();
    let target = this.#scopes.resolve(this.#name(), line);
    let isMethod = false;
    while (!isMethod && (lexer.is('.') || lexer.is(':'))) {
      isMethod = lexer.is(':');
      lexer.next();
      const key: Expression = { kind: 'string', value: this.#name() };
      target = { kind: 'index', object: target, key, line };
    }
    const body = this.#functionBody(isMethod, line);
    markAssigned(target);
    return { kind: 'assign', targets: [target], values: [body] };
  }

  #localFunction(): Statement {
    const local = this.#scopes.declare(this.#name());
    this.#scopes.activate(local);
    return { kind: 'localFunction', local, body: this.#functionBody(false, this.#lexer.line) };
  }

  #local(): Statement {
    const names = [this.#name()];
    while (this.#take(',')) names.push(this.#name());
    const values = this.#take('=') ? this.#expressions() : [];
    const locals = names.map((name) => this.#scopes.declare(name));
    this.#scopes.activate(...locals);
    return { kind: 'localDeclaration', locals, values };
  }

  #expressionStatement(): Statement {
    const lexer = this.#lexer;
    const first = this.#suffixed();
    if (first.kind === 'call' || first.kind === 'method') {
      if (!lexer.is('=') && !lexer.is(',')) return { kind: 'callStatement', call: first };
    }
    const targets = [first];
    for (;;) {
      const target = targets.at(-1)!;
      if (target.kind !== 'local' && target.kind !== 'global' && target.kind !== 'index') {
        lexer.fail('syntax error');
      }
      if (!this.#take(',')) break;
      if (targets.length >= maxDepth) lexer.fail('chunk has too many syntax levels', false);
      targets.push(this.#suffixed());
    }
    this.#expect('=');
    const values = this.#expressions();
    for (const target of targets) markAssigned(target);
    return { kind: 'assign', targets, values };
  }

  // ---- expressions

  #expressions(): Expression[] {
    const list = [this.#expression()];
    while (this.#take(',')) list.push(this.#expression());
    return list;
  }

  #expression(limit = 0): Expression {
    this.#enter();
    const lexer = this.#lexer;
    let left: Expression;
    if (lexer.is('not') || lexer.is('-') || lexer.is('#')) {
      const op = lexer.text as 'not' | '-' | '#';
      const { line } = lexer;
      lexer.next();
      left = { kind: 'unary', op, operand: this.#expression(unaryPower), line };
    } else left = this.#simple();
    for (;;) {
      const isOperator = lexer.kind === 'symbol' || lexer.kind === 'keyword';
      const op = lexer.text as BinaryOperator;
      if (!isOperator || !Object.hasOwn(powers, op)) break;
      const [before, after] = powers[op];
      if (before <= limit) break;
      const { line } = lexer;
      lexer.next();
      left = { kind: 'binary', op, left, right: this.#expression(after), line };
    }
    this.#depth--;
    return left;
  }

  #simple(): Expression {
    const lexer = this.#lexer;
    if (lexer.kind === 'number') {
      const value = lexer.number;
      lexer.next();
      return { kind: 'number', value };
    }
    if (lexer.kind === 'string') {
      const value = lexer.text;
      lexer.next();
      return { kind: 'string', value };
    }
    if (lexer.kind === 'keyword') {
      const { text, line } = lexer;
      if (text === 'nil' || text === 'true' || text === 'false') {
        lexer.next();
        return { kind: text };
      }
      if (text === 'function') {
        lexer.next();
        return this.#functionBody(false, line);
      }
    }
    if (lexer.is('...')) {
      if (!this.#scopes.current.isVararg) lexer.fail(`cannot use '...' outside a vararg function`);
      lexer.next();
      return { kind: 'vararg' };
    }
    if (lexer.is('{')) return this.#table();
    return this.#suffixed();
  }

  #primary(): Expression {
    const lexer = this.#lexer;
    const { line } = lexer;
    if (lexer.kind === 'name') return this.#scopes.resolve(this.#name(), line);
    if (!lexer.is('(')) lexer.fail('unexpected symbol');
    lexer.next();
    const inner = this.#expression();
    this.#expectClosing(')', '(', line);
    return { kind: 'paren', inner };
  }

  #suffixed(): Expression {
    const lexer = this.#lexer;
    this.#enter();
    let left = this.#primary();
    for (;;) {
      const { line } = lexer;
      if (lexer.is('.')) {
        lexer.next();
        left = { kind: 'index', object: left, key: { kind: 'string', value: this.#name() }, line };
      } else if (lexer.is('[')) {
        lexer.next();
        const key = this.#expression();
        this.#expect(']');
        left = { kind: 'index', object: left, key, line };
      } else if (lexer.is(':')) {
        lexer.next();
        const name = this.#name();
        left = { kind: 'method', object: left, name, args: this.#arguments(), line };
      } else if (lexer.is('(') || lexer.is('{') || lexer.kind === 'string') {
        left = { kind: 'call', callee: left, args: this.#arguments(), line };
      } else break;
    }
    this.#depth--;
    return left;
  }

  #arguments(): Expression[] {
    const lexer = this.#lexer;
    const { line } = lexer;
    if (lexer.kind === 'string') {
      const value = lexer.text;
      lexer.next();
      return [{ kind: 'string', value }];
    }
    if (lexer.is('{')) return [this.#table()];
    if (!lexer.is('(')) lexer.fail('function arguments expected');
    if (line !== lexer.lastLine) {
      lexer.fail('ambiguous syntax (function call x new statement)');
    }
    lexer.next();
    if (this.#take(')')) return [];
    const args = this.#expressions();
    this.#expectClosing(')', '(', line);
    return args;
  }

  #table(): Expression {
    const lexer = this.#lexer;
    const { line } = lexer;
    const items: Expression[] = [];
    const fields: { key: Expression; value: Expression; line: number }[] = [];
    this.#expect('{');
    while (!lexer.is('}')) {
      const at = lexer.line;
      if (lexer.is('[')) {
        lexer.next();
        const key = this.#expression();
        this.#expect(']');
        this.#expect('=');
        fields.push({ key, value: this.#expression(), line: at });
      } else if (lexer.kind === 'name' && lexer.isAhead('=')) {
        const key: Expression = { kind: 'string', value: this.#name() };
        lexer.next();
        fields.push({ key, value: this.#expression(), line: at });
      } else items.push(this.#expression());
      if (!this.#take(',') && !this.#take(';')) break;
    }
    this.#expectClosing('}', '{', line);
    return { kind: 'table', items, fields, line };
  }

  #functionBody(isMethod: boolean, line: number): FunctionBody {
    const lexer = this.#lexer;
    const names = isMethod ? ['self'] : [];
    let isVararg = false;
    this.#expect('(');
    if (!lexer.is(')')) {
      do {
        if (lexer.is('...')) {
          lexer.next();
          isVararg = true;
        } else names.push(this.#name());
      } while (!isVararg && this.#take(','));
    }
    this.#expect(')');
    const scope = this.#scopes.begin(isVararg);
    const parameters = names.map((name) => this.#scopes.declare(name));
    this.#scopes.activate(...parameters);
    const body = this.#block();
    this.#expectClosing('end', 'function', line);
    this.#scopes.end();
    return { kind: 'function', scope, parameters, body, line };
  }
}

function markAssigned(target: Expression): void {
  if (target.kind === 'local') target.local.isAssigned = true;
}
