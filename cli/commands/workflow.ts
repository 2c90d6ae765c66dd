// `polyrow workflow`: management work that takes several steps.

import type { Command } from 'commander';
import type { RunState } from '../../control/workflows/workflow.ts';
import type { WorkflowDetails, WorkflowSummary } from '../../control/workflows/workflow-routes.ts';
import { answer } from '../output/answer.ts';
import { card, type Column, grid } from '../output/grid.ts';
import { formatTime, shorten } from '../output/values.ts';
import { withServer } from './server-access.ts';

export function workflowCommand(program: Command): void {
  const workflow = program
    .command('workflow')
    .description('Workflows: management work of several steps, such as dropping a tenant.');
  withServer(
    workflow.command('list').description('Show running workflows, and the last ones that ended.'),
    async (client, flags) => {
      const { workflows } = await client.get<{ workflows: WorkflowSummary[] }>('/v1/workflows');
      await answer(flags, workflows, (all) => grid(columns, all));
    },
  );
  withServer(
    workflow.command('show <workflow>').description('Show one workflow and its steps.'),
    async (client, flags, id) => {
      const page = `/v1/workflows/${encodeURIComponent(id!)}`;
      await answer(flags, await client.get<WorkflowDetails>(page), describe);
    },
  );
}

const columns: Column<WorkflowSummary>[] = [
  { title: 'workflow', value: ({ id }) => id },
  { title: 'kind', value: ({ kind }) => kind },
  { title: 'status', value: ({ status }) => status },
  { title: 'created', value: ({ createdAt }) => formatTime(createdAt) },
  { title: 'ended', value: ({ endedAt }) => (endedAt === null ? '' : formatTime(endedAt)) },
  { title: 'error', value: ({ error }) => shorten(error ?? '', 80) },
];

function describe(workflow: WorkflowDetails): string {
  const { id, kind, input, status, error, createdAt, updatedAt } = workflow;
  return card([
    ['workflow', id],
    ['kind', kind],
    ['input', JSON.stringify(input)],
    ['status', status],
    ['created', formatTime(createdAt)],
    ['updated', formatTime(updatedAt)],
    ...(error === null ? [] : [['error', error] as const]),
    ...stepsOf(workflow, ''),
  ]);
}

function stepsOf({ steps }: RunState, indent: string): [string, string][] {
  return Object.entries(steps).flatMap(([name, { status, nested = [] }]) => [
    [`${indent}step ${name}`, status] as [string, string],
    ...nested.flatMap((each): [string, string][] => [
      [`${indent}  ${each.kind}`, JSON.stringify(each.input)],
      ...stepsOf(each, `${indent}    `),
    ]),
  ]);
}
