// /v1/workflows: management work that takes several steps. Operators and viewers see it.

import type { FastifyInstance } from 'fastify';
import { addRoute } from '../admin/route.ts';
import { flag, listOf, object, text } from '../admin/schemas.ts';
import type { WorkflowEngine } from './workflow-engine.ts';
import { type WorkflowDocument, WorkflowError, workflowStatuses } from './workflow.ts';

const time = { type: 'integer', minimum: 0, description: 'Unix milliseconds.' } as const;
const summary = {
  id: text,
  kind: text,
  status: { type: 'string', enum: workflowStatuses },
  error: { type: ['string', 'null'], description: 'Of the last step that failed.' },
  createdAt: time,
  updatedAt: time,
  endedAt: { type: ['integer', 'null'], minimum: 0 },
} as const;
const listed = object(summary, Object.keys(summary));
const details = {
  ...summary,
  input: { description: 'What it was asked to do.' },
  steps: { type: 'object', description: 'Progress of each step that has begun, by name.' },
  resources: { type: 'array', items: text, description: 'What it has locked until it ends.' },
  isForwardOnly: { ...flag, description: 'It is past its point of no return.' },
  isCancelled: flag,
} as const;
const shown = object(details, Object.keys(details));

export type WorkflowSummary = Pick<
  WorkflowDocument,
  'kind' | 'status' | 'error' | 'createdAt' | 'updatedAt' | 'endedAt'
> & { id: string };
export type WorkflowDetails = Omit<WorkflowDocument, 'owner' | 'version'> & { id: string };

export function workflowRoutes(app: FastifyInstance, engine: WorkflowEngine): void {
  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/workflows',
      access: 'observe',
      summary: 'Workflows that have not ended, and the last ones that have; oldest first.',
      answer: listOf('workflows', listed),
    },
    () => ({
      workflows: engine.list().map(({ id, document }): WorkflowSummary => {
        const { kind, status, error, createdAt, updatedAt, endedAt } = document;
        return { id, kind, status, error, createdAt, updatedAt, endedAt };
      }),
    }),
  );
  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/workflows/:workflow',
      access: 'observe',
      summary: 'One workflow with the progress of its steps.',
      answer: shown,
    },
    ({ path }): WorkflowDetails => {
      const id = path['workflow']!;
      const found = engine.find(id);
      if (found === undefined) throw new WorkflowError('missing', `there is no workflow ${id}`);
      const { owner: _owner, version: _version, ...rest } = found;
      return { id, ...rest };
    },
  );
}
