// The syntax tree of Lua 5.1. Names are resolved while parsing: a `Local` node points at its declaration.

/** One declaration of a local variable, parameters included. */
export interface Local {
  readonly name: string;
  /** Unique within the chunk; generated code calls the variable by it. */
  readonly id: number;
  /** The function that declares it. */
  readonly owner: FunctionScope;
  /** Something other than its declaration assigns to it. */
  isAssigned: boolean;
  /** The control variable of a numeric loop: a number until it is assigned. */
  isLoopNumber: boolean;
}

export interface FunctionScope {
  readonly parent: FunctionScope | undefined;
  readonly isVararg: boolean;
  /** Local variables declared in it, which sets the size of its stack frame. */
  locals: number;
}

export type BinaryOperator =
  | '+'
  | '-'
  | '*'
  | '/'
  | '%'
  | '^'
  | '..'
  | '=='
  | '~='
  | '<'
  | '<='
  | '>'
  | '>='
  | 'and'
  | 'or';

type UnaryOperator = 'not' | '-' | '#';

export interface Call {
  readonly kind: 'call';
  readonly callee: Expression;
  readonly args: readonly Expression[];
  readonly line: number;
}

export interface MethodCall {
  readonly kind: 'method';
  readonly object: Expression;
  readonly name: string;
  readonly args: readonly Expression[];
  readonly line: number;
}

export interface FunctionBody {
  readonly kind: 'function';
  readonly scope: FunctionScope;
  readonly parameters: readonly Local[];
  readonly body: readonly Statement[];
  readonly line: number;
}

interface TableConstructor {
  readonly kind: 'table';
  readonly items: readonly Expression[];
  readonly fields: readonly { key: Expression; value: Expression; line: number }[];
  readonly line: number;
}

interface Index {
  readonly kind: 'index';
  readonly object: Expression;
  readonly key: Expression;
  readonly line: number;
}

export type Expression =
  | { readonly kind: 'nil' | 'true' | 'false' | 'vararg' }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'local'; readonly local: Local; readonly isUpvalue: boolean }
  | { readonly kind: 'global'; readonly name: string; readonly line: number }
  | Index
  | Call
  | MethodCall
  | FunctionBody
  | TableConstructor
  | {
      readonly kind: 'binary';
      readonly op: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
      readonly line: number;
    }
  | {
      readonly kind: 'unary';
      readonly op: UnaryOperator;
      readonly operand: Expression;
      readonly line: number;
    }
  /** In parentheses: cut to one value. */
  | { readonly kind: 'paren'; readonly inner: Expression };

export type Statement =
  | {
      readonly kind: 'localDeclaration';
      readonly locals: readonly Local[];
      readonly values: readonly Expression[];
    }
  | { readonly kind: 'localFunction'; readonly local: Local; readonly body: FunctionBody }
  | {
      readonly kind: 'assign';
      readonly targets: readonly Expression[];
      readonly values: readonly Expression[];
    }
  | { readonly kind: 'callStatement'; readonly call: Call | MethodCall }
  | { readonly kind: 'do'; readonly body: readonly Statement[] }
  | { readonly kind: 'while'; readonly condition: Expression; readonly body: readonly Statement[] }
  | { readonly kind: 'repeat'; readonly condition: Expression; readonly body: readonly Statement[] }
  | {
      readonly kind: 'if';
      readonly branches: readonly { condition: Expression; body: readonly Statement[] }[];
      readonly otherwise: readonly Statement[] | undefined;
    }
  | {
      readonly kind: 'numericFor';
      readonly variable: Local;
      readonly start: Expression;
      readonly limit: Expression;
      readonly step: Expression | undefined;
      readonly body: readonly Statement[];
      readonly line: number;
    }
  | {
      readonly kind: 'genericFor';
      readonly variables: readonly Local[];
      readonly values: readonly Expression[];
      readonly body: readonly Statement[];
      readonly line: number;
    }
  | { readonly kind: 'return'; readonly values: readonly Expression[] }
  | { readonly kind: 'break' };

export interface Chunk {
  readonly main: FunctionBody;
  /** Local variables are numbered below this. */
  readonly localCount: number;
}
