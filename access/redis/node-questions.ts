// Answers questions of other nodes of a cluster on behalf of their clients.

import { CommandError } from '../../universal-row/errors.ts';
import type { Client, ClientServer } from './client.ts';
import { answerHere, isWide } from './cluster-wide.ts';
import type { KillOutcome, TenantQuestion } from './elsewhere.ts';
import type { Tenant } from './tenant.ts';

/** Ends long scripts or functions that have not written. */
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

/** Scripts a node may have missed. */
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

/** Answers another node. */
export function answerNode(
  question: TenantQuestion,
  server: ClientServer,
  tenant: Tenant<Client>,
): unknown {
  if (isWide(question)) return answerHere({ server, tenant }, question);
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
