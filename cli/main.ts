#!/usr/bin/env node
// The `polyrow` command. Exit codes: 0 done, 1 failed, 2 asked for wrongly (a flag, a setting).

import { fitV8 } from '../server/lifecycle/fit-v8.ts';
import { makeFilesPrivate } from '../server/lifecycle/private-files.ts';
import { PlaneHost } from '../server/planes/plane-host.ts';

const words = process.argv.slice(2);
const planes = {
  redis: new PlaneHost('redis', new URL('../server/planes/redis-plane.js', import.meta.url)),
  influx: new PlaneHost('influx', new URL('../server/planes/influx-plane.js', import.meta.url)),
};
makeFilesPrivate();
fitV8();
// Loading the planes' code takes most of a start, so their threads start first. If no server is wanted after all, the
// threads end with the process.
if (looksLikeStart()) for (const plane of Object.values(planes)) plane.load();

function looksLikeStart(): boolean {
  const first = words[0] ?? '';
  if (first !== 'start' && first !== '' && !first.startsWith('-')) return false;
  return !words.some((word) =>
    /^(-h|--help|-V|--version|--(check|print)-config|--processes(=.*)?)$/.test(word),
  );
}

const { runProgram } = await import('./program.ts');
const exitCode = await runProgram(words, planes);
// A started server continues; a failed start must end even with open handles.
if (exitCode !== 0) process.exit(exitCode);
