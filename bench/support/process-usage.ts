// Resource usage of a running process, from Linux.

import { readdirSync, readFileSync } from 'node:fs';

const ticksPerSecond = 100;

/** User and system time since the process began. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The second field is the program's name and may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** User and system time of all threads that the process has now: finer than `cpuSeconds`. */
export function cpuNanoseconds(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks).reduce((sum, task) => {
    const [onCpu] = readFileSync(`${tasks}/${task}/schedstat`, 'latin1').split(' ');
    return sum + Number(onCpu);
  }, 0);
}

export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  if (line === null) throw new Error(`/proc/${pid}/status has no VmRSS`);
  return Number(line[1]) * 1024;
}

/** The most it ever had resident. */
export function peakResidentBytes(pid: number): number {
  const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  if (line === null) throw new Error(`/proc/${pid}/status has no VmHWM`);
  return Number(line[1]) * 1024;
}
