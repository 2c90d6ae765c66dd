// Inputs by the groups of a statement.

import type { Slices } from '../../../../../universal-row/slices.ts';
import { compareText } from '../../../../../universal-row/series/series-key.ts';
import type { Input, InputRequest } from '../sources/input.ts';

export interface Sources {
  /** Groups stay open until the plan is closed. */
  open(request: InputRequest): Slices<InputGroups>;
}

/** Inputs by group. */
export type InputGroups = ReadonlyMap<string, InputGroup>;

export interface InputGroup {
  readonly name: string;
  readonly tags: readonly (readonly [key: string, value: string])[];
  /** In the order in which rows of the same time come. */
  readonly inputs: Input[];
}

/** By measurement, then by the values of the tags. */
export function compareGroups(
  a: Pick<InputGroup, 'name' | 'tags'>,
  b: Pick<InputGroup, 'name' | 'tags'>,
): number {
  let order = compareText(a.name, b.name);
  for (let i = 0; order === 0 && i < a.tags.length; i++) {
    order = compareText(a.tags[i]![1], b.tags[i]![1]);
  }
  return order;
}
