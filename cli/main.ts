#!/usr/bin/env node
// The `polyrow` command. Exit codes: 0 done, 1 failed, 2 asked for wrongly (a flag, a setting).

import { PlaneHost } from './planes/plane-host.ts';

const words = process.argv.slice(2);
const redisPlane = new PlaneHost('redis', new URL('./planes/redis-plane.js', import.meta.url));
// Of a start the plane's code takes longest to load: its thread begins before all else. Should it turn
// out that no server is wanted, the thread ends with the process.
if (looksLikeStart()) redisPlane.load();

function looksLikeStart(): boolean {
  const first = words[0] ?? '';
  if (first !== 'start' && first !== '' && !first.startsWith('-')) return false;
  return !words.some((word) => /^(-h|--help|-V|--version|--(check|print)-config)$/.test(word));
}

const { runProgram } = await import('./program.ts');
const exitCode = await runProgram(words, redisPlane);
// A started server goes on; a failed start must not be kept alive by what is still open.
if (exitCode !== 0) process.exit(exitCode);
