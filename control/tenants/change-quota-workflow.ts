// Changes a tenant's quota by hand (AWS): a check, then step by step to the quota asked for, each step watched before
// the next one. When a step is refused or throttles more than before, or an operator cancels, the steps are undone in
// reverse. An operator's own change in the meantime wins: nothing is set over a quota that this did not set.

import type { Json } from '../metadata/document-store.ts';
import { pause, type Timers } from '../workflows/timers.ts';
import type { ActionStep, StepContext, WorkflowDefinition } from '../workflows/workflow.ts';
import { planQuotaChange, type QuotaChangeRules } from './quota-change-plan.ts';

const kind = 'change-quota';
const stepKind = 'set-quota';

/** A name may be given again, a number is not. */
interface TenantName {
  name: string;
  number: number;
}

export interface QuotaChanging {
  /** Request units a second, 0 for no limit; undefined when the tenant is gone or on its way out. */
  quotaOf(tenant: TenantName): number | undefined;
  /** Sets it if it is still `expected`; false if not. Resolves once it is durable. */
  setQuota(tenant: TenantName, expected: number, quota: number): Promise<boolean>;
  /** Units a second in the highest hour of the last week. */
  highestHour(tenant: TenantName): Promise<number>;
  /** Why the pool has no room for a higher quota. */
  refusal(tenant: TenantName, quota: number): Promise<string | undefined>;
  /** Part of the tenant's requests that were throttled in the last `overMs`, 0 to 1. */
  throttled(tenant: TenantName, overMs: number): Promise<number>;
}

export interface QuotaChange {
  tenant: TenantName;
  to: number;
  /** Even below the highest hour of the last week. */
  isForced?: boolean;
  /** The change whose quota is taken back: at once, as it throttles now. */
  undoes?: { from: number };
}

/** One step, as the nested workflow has it. */
interface Step {
  tenant: TenantName;
  from: number;
  to: number;
  /** Part that was throttled before the change; null for a step that is not watched. */
  before: number | null;
}

interface Checked {
  from: number;
  steps: number[];
  before: number | null;
}

/** Arguments of `submit` and `submission`. `id` is new for each change. */
export function changeQuotaRequest(
  id: string,
  change: QuotaChange,
): [id: string, kind: string, input: Json] {
  return [`${kind}-${id}`, kind, change as unknown as Json];
}

/** Takes a change back that has ended; `from` is the quota before it. */
export function undoQuotaRequest(
  id: string,
  { tenant, to }: QuotaChange,
  from: number,
): [id: string, kind: string, input: Json] {
  return changeQuotaRequest(id, { tenant, to: from, undoes: { from: to } });
}

/** The workflow and the one nested in it. */
export function changeQuotaWorkflows(
  tenants: QuotaChanging,
  rules: QuotaChangeRules,
  timers: Timers,
): WorkflowDefinition[] {
  return [
    {
      kind,
      // Not the tenant itself: its drop does not wait for the steps.
      resources: (input) => resources((input as unknown as QuotaChange).tenant),
      steps: [
        { name: 'check', run: ({ input }) => check(tenants, rules, changeOf(input)) },
        {
          name: 'roll-out',
          nest: async ({ input, outputs }) => {
            const { tenant } = changeOf(input);
            const { from, steps, before } = outputs['check'] as unknown as Checked;
            return steps.map((to, i) => {
              const step: Step = { tenant, from: steps[i - 1] ?? from, to, before };
              return { kind: stepKind, input: step as unknown as Json };
            });
          },
        },
      ],
    },
    {
      kind: stepKind,
      resources: (input) => resources(stepOf({ input }).tenant),
      steps: [set(tenants), watch(tenants, rules, timers)],
    },
  ];
}

function resources({ number }: TenantName): string[] {
  return [`quota-${number}`];
}

function changeOf(input: Json): QuotaChange {
  return input as unknown as QuotaChange;
}

function stepOf({ input }: Pick<StepContext, 'input'>): Step {
  return input as unknown as Step;
}

async function check(
  tenants: QuotaChanging,
  rules: QuotaChangeRules,
  { tenant, to, isForced = false, undoes }: QuotaChange,
): Promise<Json> {
  const from = tenants.quotaOf(tenant);
  if (from === undefined) throw new Error(`there is no tenant ${tenant.name}`);
  let checked: Checked;
  if (undoes === undefined) {
    const refusal = await tenants.refusal(tenant, to);
    const highest = await tenants.highestHour(tenant);
    const plan = planQuotaChange(from, to, highest, isForced, refusal, rules);
    if ('refused' in plan) throw new Error(plan.refused);
    const before = await tenants.throttled(tenant, rules.intervalMs);
    checked = { from, steps: [...plan.steps], before };
  } else {
    if (from !== undoes.from) throw changed(tenant);
    checked = { from, steps: [to], before: null };
  }
  return checked as unknown as Json;
}

function set(tenants: QuotaChanging): ActionStep {
  return {
    name: 'set',
    run: async (context) => {
      const { tenant, from, to, before } = stepOf(context);
      // It was set before the process died.
      if (tenants.quotaOf(tenant) === to) return;
      if (before !== null && isHigher(from, to)) {
        const refusal = await tenants.refusal(tenant, to);
        if (refusal !== undefined) throw new Error(refusal);
      }
      if (context.signal.aborted) return;
      if (!(await tenants.setQuota(tenant, from, to))) throw changed(tenant);
    },
    compensate: async (context) => {
      const { tenant, from, to } = stepOf(context);
      if (tenants.quotaOf(tenant) === to) await tenants.setQuota(tenant, to, from);
    },
  };
}

function watch(tenants: QuotaChanging, rules: QuotaChangeRules, timers: Timers): ActionStep {
  return {
    name: 'watch',
    // A process that resumes the workflow waits again, because it did not observe the time before.
    run: async (context) => {
      const { tenant, to, before } = stepOf(context);
      if (before === null) return;
      await pause(timers, rules.intervalMs, context.signal);
      if (context.signal.aborted) return;
      const now = await tenants.throttled(tenant, rules.intervalMs);
      if (now > before) {
        throw new Error(`a quota of ${to} throttles ${percent(now)}, ${percent(before)} before`);
      }
    },
  };
}

function isHigher(from: number, to: number): boolean {
  return from !== 0 && (to === 0 || to > from);
}

function changed({ name }: TenantName): Error {
  return new Error(`the quota of ${name} was changed meanwhile`);
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} % of the requests`;
}
