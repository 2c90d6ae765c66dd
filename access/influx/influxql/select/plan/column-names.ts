// Names of the columns of an answer.

import type { Expression, SelectField } from '../../ast.ts';

/** The alias, or a name from the expression: v*2 is v, v+i is v_i, mean(v) is mean. */
export function fieldName({ expression, alias }: SelectField): string {
  return alias ?? nameOf(expression);
}

function nameOf(expression: Expression): string {
  switch (expression.kind) {
    case 'reference':
    case 'call':
      return expression.name;
    case 'distinct':
      return 'distinct';
    case 'parentheses':
      return nameOf(expression.inner);
    case 'binary':
      return namesIn(expression).join('_');
    default:
      return '';
  }
}

function namesIn(expression: Expression): string[] {
  switch (expression.kind) {
    case 'reference':
    case 'call':
      return [expression.name];
    case 'parentheses':
      return namesIn(expression.inner);
    case 'binary':
      return [...namesIn(expression.left), ...namesIn(expression.right)];
    default:
      return [];
  }
}

/** Numbers repeats: `_1`, `_2`. Aliases stay as they are. */
export function columnNames(fields: readonly SelectField[]): string[] {
  const seen = new Map<string, number>();
  for (const { alias } of fields) if (alias !== undefined) seen.set(alias, 1);
  return fields.map((field) => {
    if (field.alias !== undefined) return field.alias;
    const name = fieldName(field);
    let count = seen.get(name);
    if (count === undefined) {
      seen.set(name, 1);
      return name;
    }
    while (seen.has(`${name}_${count}`)) count++;
    seen.set(name, count + 1);
    seen.set(`${name}_${count}`, 1);
    return `${name}_${count}`;
  });
}
