import { casesFor, runCase } from '../conformance.ts';
import { KvEngine } from './kv-engine.ts';
import { mkdtempSync } from 'node:fs';
let n=0; const root=mkdtempSync('/tmp/kvp-');
const subject={model:'kv',supports:{rollback:true,reopen:true},create:(directory:string)=>new KvEngine({directory}),newDirectory:()=>root+'/'+n++};
for (const one of casesFor(subject)) if (one.name===process.argv[2]) {const t=performance.now(); await runCase(one,subject); console.log(one.name,performance.now()-t);}
