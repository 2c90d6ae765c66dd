// Logs that the control plane keeps in the data directory.

import { AuditLog } from '../../control/admin/audit/audit-log.ts';
import { LineLog } from '../../control/line-log/line-log.ts';
import { UsageHistory, type UsageRecord } from '../../control/monitor/usage-history.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import type { DataDirectory } from './data-directory.ts';

type Report = (message: string) => void;

export function openAuditLog(data: DataDirectory, report: Report): AuditLog {
  return AuditLog.open({ disk: realDisk, directory: data.file('audit'), report });
}

export function openUsageHistory(data: DataDirectory, report: Report): UsageHistory {
  const log = LineLog.open<UsageRecord>({
    disk: realDisk,
    directory: data.file('usage'),
    name: 'spent',
    fileBytes: 16 * 1024 * 1024,
    files: 16,
    sync: true,
    report,
  });
  return new UsageHistory(log);
}
