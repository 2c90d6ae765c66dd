// A plan carried out: its groups, each with a stream of rows.

import { type Slices, sortedInSlices } from '../../../../../universal-row/slices.ts';
import type { Run } from '../context.ts';
import type { Plan } from '../plan/plan.ts';
import {
  type Group,
  type Input,
  type InputRequest,
  openMeasurement,
  type OpenInputs,
  subqueryInputs,
} from '../sources/input.ts';
import { openAggregate } from './aggregate.ts';
import { compareGroups, type InputGroup, type InputGroups, type Sources } from './groups.ts';
import { openRaw } from './raw.ts';

/** Inputs whose tags are looked at between two yields. */
const inputsAtOnce = 2048;

interface OpenPlan {
  /** Ascending by measurement and tag values. */
  readonly groups: readonly Group[];
  /** Releases the inputs. Must be called. */
  readonly close: () => void;
}

export function* openPlan(plan: Plan, run: Run): Slices<OpenPlan> {
  const openings: { readonly close: () => void }[] = [];
  const sources: Sources = {
    *open(request) {
      const work = openSources(plan, request, run);
      // Closing an unfinished opening releases the cursors that it has opened so far.
      openings.push({ close: () => work.return(undefined as never) });
      const opened = yield* work;
      openings.push(opened);
      return opened.groups;
    },
  };
  const close = (): void => {
    for (const opening of openings.splice(0)) opening.close();
  };
  let isOpen = false;
  try {
    const groups =
      plan.calls.length > 0
        ? yield* openAggregate(plan, sources, run)
        : yield* openRaw(plan, sources);
    run.countGroups(groups.length);
    isOpen = true;
    return { groups, close };
  } finally {
    // Also runs when the caller abandons the generator.
    if (!isOpen) close();
  }
}

function* openSources(
  plan: Plan,
  request: InputRequest,
  run: Run,
): Slices<{ groups: InputGroups; close: () => void }> {
  const groups = new Map<string, InputGroup>();
  const openings: { readonly close: () => void }[] = [];
  const close = (): void => {
    for (const opening of openings) opening.close();
  };
  let isOpen = false;
  try {
    for (const source of plan.sources) {
      let inputs: readonly Input[];
      if (source.kind === 'measurement') {
        const opened: OpenInputs = yield* openMeasurement(source, request, run);
        openings.push(opened);
        inputs = opened.inputs;
      } else {
        const inner = yield* openPlan(source.plan, run);
        openings.push(inner);
        inputs = subqueryInputs(source.plan, inner.groups, source.rows, request.refs);
      }
      const isLimited = source.kind === 'measurement';
      yield* addInputs(
        groups,
        plan,
        request.descending ? [...inputs].reverse() : inputs,
        isLimited,
      );
    }
    isOpen = true;
  } finally {
    if (!isOpen) close();
  }
  return { groups, close };
}

function* addInputs(
  groups: Map<string, InputGroup>,
  plan: Plan,
  inputs: readonly Input[],
  isLimited: boolean,
): Slices<void> {
  const { dimensions, seriesLimit, seriesOffset } = plan;
  let added = new Map<string, InputGroup>();
  let looked = 0;
  for (const input of inputs) {
    if (++looked % inputsAtOnce === 0) yield;
    let key = input.name;
    for (const dimension of dimensions) key += `\0${input.tag(dimension)}`;
    let group = added.get(key);
    if (group === undefined) {
      const tags = dimensions.map((dimension) => [dimension, input.tag(dimension)] as const);
      group = { name: input.name, tags, inputs: [] };
      added.set(key, group);
    }
    group.inputs.push(input);
  }
  if (isLimited && (seriesLimit > 0 || seriesOffset > 0)) {
    const end = seriesLimit > 0 ? seriesOffset + seriesLimit : Infinity;
    added = new Map((yield* sortedInSlices([...added], byName)).slice(seriesOffset, end));
  }
  for (const [key, group] of added) {
    const known = groups.get(key);
    if (known === undefined) groups.set(key, group);
    else for (const input of group.inputs) known.inputs.push(input);
  }
}

function byName([, a]: [string, InputGroup], [, b]: [string, InputGroup]): number {
  return compareGroups(a, b);
}
