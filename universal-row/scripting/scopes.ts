// Which declaration a name of a script means.

import type { Expression, FunctionScope, Local } from './ast.ts';
import type { Lexer } from './lexer.ts';

const maxLocals = 200;

interface Scope extends FunctionScope {
  parent: Scope | undefined;
  /** Declarations in force, the innermost last. */
  readonly active: Local[];
  loops: number;
}

export class Scopes {
  /** Scope of the function being parsed. */
  current: Scope = newScope(undefined, true);
  /** Locals in the whole program. */
  localCount = 0;
  readonly #lexer: Lexer;

  constructor(lexer: Lexer) {
    this.#lexer = lexer;
  }

  /** A function begins. */
  begin(isVararg: boolean): Scope {
    this.current = newScope(this.current, isVararg);
    return this.current;
  }

  end(): void {
    this.current = this.current.parent!;
  }

  declare(name: string, isLoopNumber = false): Local {
    const scope = this.current;
    if (scope.active.length >= maxLocals) {
      this.#lexer.fail(`too many local variables (limit is ${maxLocals}) in function`);
    }
    const local = {
      name,
      id: this.localCount++,
      owner: scope,
      isAssigned: false,
      isLoopNumber,
    };
    scope.locals++;
    return local;
  }

  /** From here on the name means this declaration. */
  activate(...locals: Local[]): void {
    this.current.active.push(...locals);
  }

  resolve(name: string, line: number): Expression {
    for (let scope: Scope | undefined = this.current; scope !== undefined; scope = scope.parent) {
      for (let i = scope.active.length - 1; i >= 0; i--) {
        const local = scope.active[i]!;
        if (local.name === name) return { kind: 'local', local, isUpvalue: scope !== this.current };
      }
    }
    return { kind: 'global', name, line };
  }
}

function newScope(parent: Scope | undefined, isVararg: boolean): Scope {
  return { parent, isVararg, locals: 0, active: [], loops: 0 };
}
