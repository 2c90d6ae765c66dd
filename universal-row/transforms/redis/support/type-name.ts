import { type Row, type Rows, Shape } from '../../../rows.ts';

const names: Readonly<Record<Shape, string>> = {
  [Shape.none]: 'none',
  [Shape.value]: 'string',
  [Shape.map]: 'hash',
  [Shape.set]: 'set',
  [Shape.ranked]: 'zset',
  [Shape.array]: 'list',
  [Shape.stream]: 'stream',
  [Shape.timed]: 'hash',
};

/** Redis's name of the row's type. */
export function typeName(rows: Rows, row: Row): string {
  return names[rows.shape(row)];
}
