// Two tables of docs/experiments.md: what waits for a live cluster, and what each policy was compared with.

type Row = readonly string[];

function table(head: Row, rows: readonly Row[]): string {
  const line = (cells: Row): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '--')), ...rows.map(line)].join('\n');
}

const waiting: readonly Row[] = [
  [
    'XS-2-monitor',
    'loads of replicas by minute, in request units, of each plane of a node',
    'dimensions beside request units, latencies by tenant; a week of minutes (a plane keeps a day)',
  ],
  [
    'XS-5.3-cycle',
    'the daily run, its check after a tenth of the steps',
    'how long a change of leader and a move take while clients work; a run that the controller starts',
  ],
  [
    'AB-3-pool',
    'placement and rebuilding',
    'requests, quotas and queues follow replicas through the loss of a zone',
  ],
  [
    'AB-5.1-scale',
    'quotas of a recorded cluster, by `abase-quotas`',
    'quotas that change by themselves',
  ],
  [
    'AWS-growth',
    'growth; a change by hand as a workflow with a check, steps and undo (AWS-growth-manual)',
    'a command that starts the workflow: the server sets limits at once',
  ],
  [
    'AWS-loop',
    'loans come back, habitual borrowers are moved',
    'the loop on pods that serve; growing the fleet when no pod has room',
  ],
  [
    'LB-IV-mapping',
    'the estimate beside simulated counters',
    'regions of a server: no table is sharded by range',
  ],
  ['LB-IV-merge', 'merges of cold neighbours', 'their effect on p99'],
  [
    'LB-V-sim',
    'planning of 64 nodes with 20,000 regions',
    'the balance of four pods that serve beside the planned one',
  ],
  ['XS-7-detect', '200 simulated faults', 'probes of nodes by nodes; what follows from a fault'],
];

const chance: readonly Row[] = [
  [
    '`xstor`',
    'XS-5.3-cycle',
    'nothing, random moves, peak mover, migration alone',
    'yes',
    'violations no better than the peak mover, which moves less; anomalies and latency better',
  ],
  ['`xstor-roles`', 'XS-5.3-role', 'nothing, random leaders', 'yes', 'better'],
  [
    '`xstor-moves`',
    'XS-5.3-migrate',
    'nothing, random moves, peak mover',
    'yes',
    'anomalies better; violations no better than the peak mover',
  ],
  [
    '`xstor-models`',
    'XS-3-modelmix',
    'nothing, random pods and nodes, first fit, worst fit',
    'no noise',
    'better than chance; worst fit where all pods have room (512 GiB), and first fit, which then frees more nodes, where they have not (256 GiB)',
  ],
  [
    'placement, copysets, partitions',
    'XS-5.3-place, XS-3-copyset, XS-5.3-partitions',
    'random placement, placement by one term',
    'no noise',
    'better',
  ],
  [
    'gateways on storage nodes',
    'XS-3-svcmix',
    'nothing, random hosts, as many as the peak needs',
    'yes',
    'better',
  ],
  ['`abase`', 'AB-5.3-intra', 'nothing, random moves, peak mover, one threshold', 'yes', 'better'],
  ['`abase-counts`', 'AB-5.3-count', 'nothing, random moves', 'yes', 'better'],
  ['`abase-pools`', 'AB-5.3-inter', 'nothing, random nodes and peers', 'yes', 'better'],
  [
    '`abase-quotas`',
    'AB-5.1-scale',
    'nothing, random changes, threshold, Holt-Winters, last day, last week, the mix of the paper',
    'the past, the time after',
    "steady tenants: no better than the last week's maximum",
  ],
  [
    'forecast',
    'AB-5.2-forecast',
    'random day, last day, last week, Holt-Winters, current use, both members alone',
    'the past, the week after',
    'the mix is no better than the trend model alone, which is the default',
  ],
  ['denoising', 'AB-5.2-denoise', 'labelled artefacts', '-', 'finds them'],
  [
    'pools for tenants',
    'AB-7-limits, AB-3-pool',
    'a pool at random, the first with room',
    'no noise',
    'better',
  ],
  ['rebuilding', 'AB-3.3-recovery', 'nothing, random nodes, one spare node', 'no noise', 'better'],
  [
    'borrowers',
    'AWS-loop',
    'nothing, random moves, peak mover',
    'yes',
    'better; targets of most room beat those of the least similar load, and are the default',
  ],
  [
    '`libra`',
    'LB-III-coop',
    'nothing, random moves, one dimension, isolated, weighted',
    'yes',
    'better',
  ],
  [
    'cuts by load, lazy splits',
    'LB-IV-split, LB-IV-lazy',
    'nothing, random cuts and moves, cuts by size, no splits, eager splits',
    'yes',
    'better',
  ],
];

export const waitingTable = [
  'What is simulated here and waits for a live cluster:',
  table(['id', 'shown', 'waits'], waiting),
].join('\n\n');

export const chanceTable = [
  'What each policy is compared with, over ten seeds. `Other draw`: planned on one draw of the noise and judged on another.',
  table(['policy', 'experiment', 'beside', 'other draw', 'result'], chance),
].join('\n\n');
