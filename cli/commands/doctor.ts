// `polyrow doctor`: problems of a server and its cluster, and their remedies.

import type { Command } from 'commander';
import type { Finding } from '../../control/cluster/diagnosis.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer } from '../output/answer.ts';
import { printableLines } from '../output/values.ts';
import type { AdminClient } from './admin-client.ts';
import { clusterPage } from './cluster.ts';
import { withServer } from './server-access.ts';

export function doctorCommand(program: Command): void {
  withServer(
    program
      .command('doctor')
      .description('Report problems of a server and its cluster, with their remedies.'),
    async (client, flags) => {
      const findings = [...(await ofServer(client)), ...(await ofCluster(client))];
      await answer(flags, { findings }, (all) => shown(all.findings));
      if (findings.some(({ severity }) => severity === 'error'))
        process.exitCode = exitCodes.failed;
    },
  );
}

/** The server's own health. */
async function ofServer(client: AdminClient): Promise<Finding[]> {
  const reasons = await client.reasonsNotReady();
  return reasons.map((problem) => {
    const remedy = problem.includes('cluster init')
      ? 'on the first node of a new cluster: polyrow cluster init; on any other see that cluster.seeds can be reached'
      : 'see the log of the server';
    return { severity: 'error' as const, problem, remedy };
  });
}

async function ofCluster(client: AdminClient): Promise<Finding[]> {
  try {
    return (await client.get<{ findings: Finding[] }>(`${clusterPage}/findings`)).findings;
  } catch (error) {
    const code = error instanceof ExitError ? error.exitCode : undefined;
    // The server is not a cluster node, or has not joined yet.
    if (code === exitCodes.conflict || code === exitCodes.missing) return [];
    throw error;
  }
}

function shown(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'all is well';
  return findings
    .map(({ severity, problem, remedy }) => printableLines(`${severity}: ${problem}\n  ${remedy}`))
    .join('\n');
}
