// Many series of few points each, as a service writes them that has a series for every call: 350,000 series
// with about 7 points, in the order of their times over one day.

import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { seededRandom } from './random.ts';

interface SparseData {
  series: number;
  pointsPerSeries: number;
}

const sparseStart = Date.UTC(2016, 0, 1);
const day = 86_400_000;
const regions = ['eu-west', 'eu-central', 'us-east', 'us-west', 'ap-south', 'ap-east'];
const kinds = ['audio', 'video', 'screen', 'data'];
const linesPerChunk = 5000;

/** The series of call `n` lasts a few minutes from a moment of its own on. */
function tagsOf(n: number): string {
  return (
    `call=c${n.toString(36)},kind=${kinds[n % 4]!},node=n${n % 997},` +
    `region=${regions[n % 6]!},room=r${n % 50_021}`
  );
}

export async function writeSparse(file: string, data: SparseData): Promise<void> {
  const out = createWriteStream(file);
  const points = data.series * data.pointsPerSeries;
  const step = day / points;
  let lines: string[] = [];
  const random = seededRandom(1);
  const below = (limit: number): number => Math.floor(random() * limit);
  // Series come and go: at any time those within a window that moves through all of them are written.
  const window = Math.max(1, Math.floor(data.series / 100));
  for (let i = 0; i < points; i++) {
    const first = Math.floor((i / points) * data.series);
    const series = (first + below(window)) % data.series;
    const time = Math.floor(sparseStart + i * step);
    const fields = `bitrate=${below(4000)}i,loss=${below(1000) / 10},rtt=${20 + below(300)}i`;
    lines.push(`calls,${tagsOf(series)} ${fields} ${time}000000`);
    if (lines.length < linesPerChunk) continue;
    if (!out.write(`${lines.join('\n')}\n`)) await once(out, 'drain');
    lines = [];
  }
  out.end(lines.length === 0 ? '' : `${lines.join('\n')}\n`);
  await once(out, 'finish');
}

/** Queries: a name, and InfluxQL. */
export const sparseQueries: readonly (readonly [name: string, q: string, target: number])[] = [
  [
    'time range',
    `SELECT bitrate, loss, rtt FROM calls WHERE region = 'eu-west' AND kind = 'audio' AND time >= '2016-01-01T12:00:00Z' AND time < '2016-01-01T12:10:00Z'`,
    0.03,
  ],
  [
    'down-sampling',
    `SELECT mean(bitrate), max(rtt) FROM calls WHERE time >= '2016-01-01T06:00:00Z' AND time < '2016-01-01T12:00:00Z' GROUP BY time(10m), region`,
    0.24,
  ],
  ['aggregation', 'SELECT sum(bitrate), count(loss) FROM calls GROUP BY region', 0.15],
  ['show tag values', 'SHOW TAG VALUES FROM calls WITH KEY = node', 1],
];
