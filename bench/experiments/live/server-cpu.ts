import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoServer } from '../../../cli/demo/demo-server.ts';

/** Microseconds of processor time that all threads of a server have taken. */
export async function cpuMicros(server: DemoServer): Promise<number> {
  const text = await server.process.metrics();
  const seconds = (name: string): number =>
    Number(new RegExp(`^process_cpu_${name}_seconds_total\\S* (\\S+)`, 'm').exec(text)?.[1]);
  return 1e6 * (seconds('user') + seconds('system'));
}

/** Processor time of an idle server, in microseconds a second. */
export async function idleMicros(server: DemoServer, seconds: number): Promise<number> {
  const before = await cpuMicros(server);
  const startedAt = performance.now();
  await sleep(seconds * 1000);
  return ((await cpuMicros(server)) - before) / ((performance.now() - startedAt) / 1000);
}
