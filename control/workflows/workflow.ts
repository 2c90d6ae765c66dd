// A workflow: ordered steps with undo, possibly nested workflows, and the document that keeps its progress. X-Stor,
// section 7.

import type { Json } from '../metadata/document-store.ts';

export interface StepContext {
  /** Id of the whole workflow. */
  readonly workflow: string;
  /** Input of the workflow, nested or not, that the step belongs to. */
  readonly input: Json;
  /** Outputs of the finished steps before it, by their names. */
  readonly outputs: Readonly<Record<string, Json>>;
  /** Aborted when this process no longer has the workflow: nothing more may be done then. */
  readonly signal: AbortSignal;
}

/**
 * A process may die in the middle of a step, and another one runs it again: both functions must be idempotent,
 * and `compensate` must do nothing where `run` did nothing.
 */
export interface ActionStep {
  readonly name: string;
  run(context: StepContext): Promise<Json | void>;
  /** Undoes `run`. A step without it has nothing to undo. */
  compensate?(context: StepContext): Promise<void>;
  /** How often `run` is tried before the workflow is rolled back; 1 by default. */
  readonly attempts?: number;
  /**
   * Once this step has begun, the workflow cannot be rolled back: steps that fail are tried until they succeed.
   */
  readonly isPointOfNoReturn?: boolean;
}

interface NestedWorkflow {
  kind: string;
  input: Json;
}

/** Runs other workflows as one step. They are planned once, and the plan is kept. */
export interface NestStep {
  readonly name: string;
  nest(context: StepContext): Promise<readonly NestedWorkflow[]>;
  /** All at once instead of one after the other. */
  readonly isParallel?: boolean;
}

type WorkflowStep = ActionStep | NestStep;

export interface WorkflowDefinition {
  readonly kind: string;
  /**
   * Ids of resources that no other workflow may change meanwhile, for the whole tree as far as it is known at the
   * start. Nested workflows lock further ones when they are planned.
   */
  resources(input: Json): readonly string[];
  /** Names are unique within a definition. */
  readonly steps: readonly WorkflowStep[];
}

/** Progress of one step. A step without a state has not finished; the first of these may have begun. */
interface StepState {
  status: 'planned' | 'done' | 'undone';
  output?: Json;
  /** States of the nested workflows of a step. */
  nested?: RunState[];
}

/** Progress of a workflow or a nested one. */
export interface RunState {
  kind: string;
  input: Json;
  /** By name. */
  steps: { [name: string]: StepState };
}

/**
 * `waiting` for its resources, `running`, `compensating` its completed steps; at the end `done` or `rolled-back`; or
 * `parked`, when compensation keeps failing, until an operator resumes it.
 */
export const workflowStatuses = [
  'waiting',
  'running',
  'compensating',
  'parked',
  'done',
  'rolled-back',
] as const;
export type WorkflowStatus = (typeof workflowStatuses)[number];

/** In the collection `workflows`, by id. Times are milliseconds since 1970. */
export interface WorkflowDocument extends RunState {
  status: WorkflowStatus;
  resources: string[];
  isForwardOnly: boolean;
  isCancelled: boolean;
  /** Why the last step that failed did. */
  error: string | null;
  createdAt: number;
  updatedAt: number;
  endedAt: number | null;
  /** The process that runs it. */
  owner: string | null;
  /** Counts the owner's writes. */
  version: number;
}

export const workflowCollection = 'workflows';
/** By resource: `{ workflow: id }`. */
export const lockCollection = 'workflowLocks';

export function hasEnded({ status }: Pick<WorkflowDocument, 'status'>): boolean {
  return status === 'done' || status === 'rolled-back';
}

export class WorkflowError extends Error {
  override readonly name = 'WorkflowError';
  readonly reason: 'missing' | 'conflict' | 'full';
  /** As HTTP tells it. */
  readonly statusCode: number;

  constructor(reason: 'missing' | 'conflict' | 'full', message: string) {
    super(message);
    this.reason = reason;
    this.statusCode = { missing: 404, conflict: 409, full: 503 }[reason];
  }
}
