// SELECT of fields and tags as they are.

import { type Slices, sortedInSlices } from '../../../../../universal-row/slices.ts';
import type { Plan } from '../plan/plan.ts';
import type { Group } from '../sources/input.ts';
import { pending, type Chunk, type Stream } from '../vector.ts';
import { limited } from './limit.ts';
import { merge } from './merge.ts';
import { compareGroups, type InputGroup, type Sources } from './groups.ts';
import { Project } from './project.ts';

export function* openRaw(plan: Plan, sources: Sources): Slices<Group[]> {
  const { refs } = plan;
  // A field that no source has gives no rows by itself; neither do tags alone.
  if (refs.every(({ type }) => type === undefined)) return [];
  const groups = yield* sources.open({
    refs,
    from: plan.from,
    to: plan.to,
    descending: plan.descending,
    needsField: true,
    rowsPerSeries: plan.limit > 0 ? plan.limit + plan.offset : undefined,
  });
  const sorted = yield* sortedInSlices([...groups.values()], compareGroups);
  return sorted.map((group) => ({
    name: group.name,
    tags: group.tags,
    rows: () => new RawRows(plan, group),
  }));
}

/** Opens the inputs when it is asked for rows. */
class RawRows implements Stream {
  readonly #plan: Plan;
  readonly #group: InputGroup;
  #rows: Stream | undefined;

  constructor(plan: Plan, group: InputGroup) {
    this.#plan = plan;
    this.#group = group;
  }

  next(): Chunk | typeof pending | undefined {
    this.#rows ??= this.#open();
    return this.#rows.next();
  }

  #open(): Stream {
    const { refs, descending, limit, offset, outputs, fill } = this.#plan;
    const inputs = this.#group.inputs.map((input) => input.open());
    const merged = limited(merge(inputs, refs, descending), limit, offset);
    const types = refs.map(({ type }) => (type === 'tag' ? 'string' : type));
    return new Project(merged, { outputs, fill, types });
  }
}
