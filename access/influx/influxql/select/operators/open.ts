// A plan carried out: its groups, each with a stream of rows.

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

export interface OpenPlan {
  /** Ascending by measurement and tag values. */
  readonly groups: readonly Group[];
  /** Lets go of what is being read. Must be called. */
  readonly close: () => void;
}

export function openPlan(plan: Plan, run: Run): OpenPlan {
  const openings: { readonly close: () => void }[] = [];
  const sources: Sources = {
    open: (request) => {
      const opened = openSources(plan, request, run);
      openings.push(opened);
      return opened.groups;
    },
  };
  const close = (): void => {
    for (const opening of openings.splice(0)) opening.close();
  };
  try {
    const groups =
      plan.calls.length > 0 ? openAggregate(plan, sources, run) : openRaw(plan, sources);
    run.countGroups(groups.length);
    return { groups, close };
  } catch (error) {
    close();
    throw error;
  }
}

function openSources(
  plan: Plan,
  request: InputRequest,
  run: Run,
): { groups: InputGroups; close: () => void } {
  const groups = new Map<string, InputGroup>();
  const openings: { readonly close: () => void }[] = [];
  const close = (): void => {
    for (const opening of openings) opening.close();
  };
  try {
    for (const source of plan.sources) {
      let inputs: readonly Input[];
      if (source.kind === 'measurement') {
        const opened: OpenInputs = openMeasurement(source, request, run);
        openings.push(opened);
        run.countSeries(opened.seriesCount);
        inputs = opened.inputs;
      } else {
        const inner = openPlan(source.plan, run);
        openings.push(inner);
        inputs = subqueryInputs(source.plan, inner.groups, source.rows, request.refs);
      }
      const isLimited = source.kind === 'measurement';
      addInputs(groups, plan, request.descending ? [...inputs].reverse() : inputs, isLimited);
    }
  } catch (error) {
    close();
    throw error;
  }
  return { groups, close };
}

function addInputs(
  groups: Map<string, InputGroup>,
  plan: Plan,
  inputs: readonly Input[],
  isLimited: boolean,
): void {
  const { dimensions, seriesLimit, seriesOffset } = plan;
  let added = new Map<string, InputGroup>();
  for (const input of inputs) {
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
    added = new Map([...added].sort(byName).slice(seriesOffset, end));
  }
  for (const [key, group] of added) {
    const known = groups.get(key);
    if (known === undefined) groups.set(key, group);
    else known.inputs.push(...group.inputs);
  }
}

function byName([, a]: [string, InputGroup], [, b]: [string, InputGroup]): number {
  return compareGroups(a, b);
}
