// All commands but `start`: operator and query commands. They are loaded only when one of them is
// run, so that they do not delay a server's start.

import type { Command } from 'commander';
import { auditCommand } from './audit.ts';
import { authenticationCommand } from './authentication.ts';
import { backupCommand } from './backup.ts';
import { calibrateCommand } from './calibrate.ts';
import { clusterCommand } from './cluster.ts';
import { commandsCommand } from './commands.ts';
import { completionCommand } from './completion.ts';
import { configCommand } from './config.ts';
import { databaseCommand } from './database.ts';
import { demoCommand } from './demo.ts';
import { doctorCommand } from './doctor.ts';
import { importCommand } from './import.ts';
import { limitCommand } from './limit.ts';
import { nodeCommand } from './node.ts';
import { partitionCommand } from './partition.ts';
import { restoreCommand } from './restore.ts';
import { simulateCommand } from './simulate.ts';
import { slowlogCommand } from './slowlog.ts';
import { tableCommand } from './table.ts';
import { tenantCommand } from './tenant.ts';
import { tokenCommand } from './token.ts';
import { topCommand } from './top.ts';
import { usageCommand } from './usage.ts';
import { userCommand } from './user.ts';
import { verifyCommand } from './verify.ts';
import { versionCommand } from './version.ts';
import { workflowCommand } from './workflow.ts';

/** In the order of the help. */
const operatorCommands: readonly ((program: Command) => void)[] = [
  tenantCommand,
  userCommand,
  tokenCommand,
  authenticationCommand,
  databaseCommand,
  tableCommand,
  partitionCommand,
  clusterCommand,
  nodeCommand,
  doctorCommand,
  limitCommand,
  usageCommand,
  topCommand,
  slowlogCommand,
  auditCommand,
  workflowCommand,
  backupCommand,
  restoreCommand,
  importCommand,
  verifyCommand,
  configCommand,
  commandsCommand,
  calibrateCommand,
  simulateCommand,
  demoCommand,
  completionCommand,
  versionCommand,
];

export function addOperatorCommands(program: Command): void {
  for (const add of operatorCommands) add(program);
}
