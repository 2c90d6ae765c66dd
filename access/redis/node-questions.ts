// Answers what other nodes of a cluster ask on behalf of their clients.

import { CommandError } from '../../universal-row/errors.ts';
import type { Client } from './client.ts';
import type { KillOutcome, TenantQuestion } from './elsewhere.ts';
import type { Tenant } from './tenant.ts';

/** Ends what takes long and has not written: functions, or scripts of EVAL. */
export function killScripts({ scripts }: Tenant<Client>, functions: boolean): KillOutcome {
  const running = [...scripts.running];
  const killable = running.filter(({ script }) => !script.hasWritten);
  const wanted = killable.filter(({ isFunction }) => isFunction === functions);
  for (const { script } of wanted) script.kill();
  if (wanted.length > 0) return 'killed';
  if (running.length === 0) return 'none';
  return killable.length === 0 ? 'unkillable' : 'other';
}

/** The rows of the tenant's function libraries are other ones, or may be: all nodes read them again before they use them. */
export async function librariesChanged({ server, tenant }: Client): Promise<void> {
  tenant.scripts.functions.outdate();
  await server.elsewhere?.ask({ what: 'librariesChanged', tenant: tenant.number });
}

/** What a node is told that may have missed it. */
export function* loadedScripts({
  tenants,
}: {
  readonly tenants: ReadonlyMap<number, Tenant<Client>>;
}): Generator<TenantQuestion> {
  for (const { number, scripts } of tenants.values()) {
    for (const { source } of scripts.cache.loaded()) {
      yield { what: 'loadScript', tenant: number, source };
    }
  }
}

/** Answers another node; undefined where this one has nothing of the tenant. */
export function answerNode(question: TenantQuestion, tenant: Tenant<Client>): unknown {
  const { scripts } = tenant;
  switch (question.what) {
    case 'loadScript':
      if (question.source === '') scripts.cache.flush();
      else load(tenant, question.source);
      return undefined;
    case 'librariesChanged':
      scripts.functions.outdate();
      return undefined;
    case 'killScripts':
      return killScripts(tenant, question.functions);
  }
}

function load({ scripts }: Tenant<Client>, source: string): void {
  try {
    scripts.cache.take(source).isLoaded = true;
  } catch (error) {
    // The node of the client has found the same, and told the client.
    if (!(error instanceof CommandError)) throw error;
  }
}
