// Reads and writes trace files.

import type {
  Trace,
  TraceDisk,
  TraceHeader,
  TraceNode,
  TracePartition,
  TracePod,
  TraceSeries,
  TraceTable,
} from './trace.ts';

/** A defect of a trace file, with its line. */
export class TraceError extends Error {
  constructor(line: number, text: string) {
    super(`line ${line}: ${text}`);
  }
}

/** A year of minutes. */
const mostPoints = 366 * 24 * 60;
const mostDimensions = 16;

export async function readTrace(lines: AsyncIterable<string> | Iterable<string>): Promise<Trace> {
  let trace: Trace | undefined;
  let number = 0;
  for await (const line of lines) {
    number++;
    if (line.trim() === '') continue;
    try {
      const value = parsed(line);
      if (trace === undefined) {
        const nothing = { nodes: [], disks: [], pods: [], tables: [], series: [], partitions: [] };
        trace = { header: headerOf(value), ...nothing };
      } else {
        addTo(trace, value);
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new TraceError(number, error.message);
    }
  }
  if (trace === undefined) throw new TraceError(1, 'the file is empty');
  return trace;
}

export function* traceLines(trace: Trace): Generator<string> {
  const line = (value: unknown): string => `${JSON.stringify(value)}\n`;
  yield line(trace.header);
  for (const node of trace.nodes) yield line({ node });
  for (const disk of trace.disks) yield line({ disk });
  for (const pod of trace.pods) yield line({ pod });
  for (const table of trace.tables) yield line({ table });
  for (const { id, values } of trace.series) {
    const rounded = Object.entries(values).map(([name, all]) => [name, Array.from(all, short)]);
    yield line({ series: { id, values: Object.fromEntries(rounded) as unknown } });
  }
  for (const partition of trace.partitions) yield line({ partition });
}

/** Six digits: a file of many minutes is a third as long. */
function short(value: number): number {
  return Number(value.toPrecision(6));
}

type Fields = Record<string, unknown>;

function parsed(line: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new RangeError('this is not JSON');
  }
  return fieldsOf(value, 'the line');
}

function headerOf(value: Fields): TraceHeader {
  if (value['format'] !== 'polyrow-trace') {
    throw new RangeError('this is no trace: the first line must have "format": "polyrow-trace"');
  }
  if (value['version'] !== 1) throw new RangeError('this version of Polyrow reads version 1 only');
  const { dimensions } = value;
  if (!Array.isArray(dimensions) || !dimensions.every((name) => typeof name === 'string')) {
    throw new RangeError('dimensions must be a list of names');
  }
  if (dimensions.length === 0 || dimensions.length > mostDimensions) {
    throw new RangeError(`dimensions must be 1 to ${mostDimensions} names`);
  }
  const points = numberOf(value, 'points');
  if (!Number.isInteger(points) || points < 1 || points > mostPoints) {
    throw new RangeError(`points must be a whole number from 1 to ${mostPoints}`);
  }
  const startAt = textOf(value, 'startAt');
  if (Number.isNaN(Date.parse(startAt))) throw new RangeError('startAt must be a time of ISO 8601');
  const pointSeconds = numberOf(value, 'pointSeconds');
  if (pointSeconds === 0) throw new RangeError('pointSeconds must be above 0');
  return { format: 'polyrow-trace', version: 1, startAt, pointSeconds, points, dimensions };
}

function addTo(trace: Trace, value: Fields): void {
  const [kind = '', ...more] = Object.keys(value);
  if (more.length > 0) throw new RangeError('a line has one entity, under the name of its kind');
  const fields = fieldsOf(value[kind], kind);
  textOf(fields, 'id');
  // Names that do not fit anything are found when the model is made.
  switch (kind) {
    case 'node':
      trace.nodes.push(fields as unknown as TraceNode);
      return;
    case 'disk':
      textOf(fields, 'node');
      trace.disks.push(fields as unknown as TraceDisk);
      return;
    case 'pod':
      textOf(fields, 'node');
      numbersOf(fields['limits'], trace.header.dimensions.length, 'limits');
      trace.pods.push(fields as unknown as TracePod);
      return;
    case 'table':
      trace.tables.push(fields as unknown as TraceTable);
      return;
    case 'series':
      trace.series.push(seriesOf(trace.header, fields));
      return;
    case 'partition':
      textOf(fields, 'table');
      useOf(fields['leader'], 'leader');
      if (fields['follower'] !== undefined) useOf(fields['follower'], 'follower');
      replicasOf(fields['replicas']);
      trace.partitions.push(fields as unknown as TracePartition);
      return;
    default:
      throw new RangeError(`there is no kind ${kind}`);
  }
}

function seriesOf({ dimensions, points }: TraceHeader, fields: Fields): TraceSeries {
  const given = fieldsOf(fields['values'], 'values');
  const values: Record<string, Float32Array> = {};
  for (const name of dimensions) {
    values[name] = Float32Array.from(numbersOf(given[name], points, `values.${name}`));
  }
  return { id: textOf(fields, 'id'), values };
}

function replicasOf(value: unknown): void {
  if (value === undefined) return;
  if (!Array.isArray(value)) throw new RangeError('replicas must be a list');
  for (const replica of value) textOf(fieldsOf(replica, 'a replica'), 'pod');
}

function useOf(value: unknown, what: string): void {
  const fields = fieldsOf(value, what);
  textOf(fields, 'series');
  if (fields['scale'] !== undefined) numberOf(fields, 'scale');
}

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new RangeError(`${what} must be an object`);
}

function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new RangeError(`${name} must be a text`);
}

function numberOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw new RangeError(`${name} must be a number, 0 or above`);
}

function numbersOf(value: unknown, length: number, what: string): number[] {
  const isFine = (one: unknown): boolean =>
    typeof one === 'number' && Number.isFinite(one) && one >= 0;
  if (Array.isArray(value) && value.length === length && value.every(isFine)) {
    return value as number[];
  }
  throw new RangeError(`${what} must be ${length} numbers, each 0 or above`);
}
