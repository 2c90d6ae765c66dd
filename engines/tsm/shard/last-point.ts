// The last row of a series without looking through its sources: the newest points are in the heads, or else
// the row that the files have last is known from the time before.

import type { FieldInfo } from '../parts.ts';
import { RowBuffer, scalarAt } from './row-buffer.ts';
import { type MergeOptions, SeriesMerge } from './series-merge.ts';
import type { ShardView } from './shard-view.ts';
import { allOf, fieldsWanted, type Wanted } from './source.ts';

export class LastPoint {
  readonly #view: ShardView;
  readonly #options: MergeOptions;
  /** For the files: all fields of the measurement, not only those of this scan. */
  readonly #ofFiles: MergeOptions;
  readonly #row: RowBuffer;

  /** `fields` are all of the measurement; the options are of a descending scan for a single row. */
  constructor(view: ShardView, options: MergeOptions, fields: readonly FieldInfo[]) {
    const wanted: Wanted = { ...allOf(fieldsWanted(fields)), descending: true, single: true };
    this.#view = view;
    this.#options = options;
    this.#ofFiles = { wanted, chunkRows: 1, bounds: [], base: options.base };
    this.#row = new RowBuffer(wanted.types);
  }

  /** Puts the row into `out`. False when it takes a closer look. */
  find(series: number, out: RowBuffer): boolean {
    const view = this.#view;
    const inHeads = view.lastInHeads(series);
    // As a rule points come in the order of time, and the files need not be asked.
    if (inHeads > view.lastInFiles && this.#findInHeads(series, view.lastInFiles, out)) return true;
    const inFiles = this.#knownTime(series);
    if (inHeads > inFiles) return this.#findInHeads(series, inFiles, out);
    const { wanted } = this.#options;
    const isWanted = inFiles > inHeads && inFiles >= wanted.from && inFiles <= wanted.to;
    return isWanted && this.#takeKnown(series, inFiles, out);
  }

  /** A row of the heads that is later than all the files have of the series. */
  #findInHeads(series: number, inFiles: number, out: RowBuffer): boolean {
    const sources = this.#view.headSources(series, this.#options.wanted);
    const found = new SeriesMerge(sources, this.#options, out).next() !== undefined;
    if (found && out.times[0]! > inFiles) return true;
    out.clear();
    return false;
  }

  /** False when the row has none of the fields. */
  #takeKnown(series: number, time: number, out: RowBuffer): boolean {
    const { fields } = this.#options.wanted;
    const values = this.#view.lastRows.valuesOf(series);
    if (fields.every((field) => values[field] === undefined)) return false;
    out.appendRow(time);
    for (let c = 0; c < fields.length; c++) {
      const value = values[fields[c]!];
      if (value !== undefined) out.set(c, value);
    }
    return true;
  }

  /** Time of the last row in the files: -Infinity when there is none, NaN when it is not cached. */
  #knownTime(series: number): number {
    const { lastRows } = this.#view;
    const known = lastRows.timeOf(series);
    if (!Number.isNaN(known) || lastRows.isFull) return known;
    const sources = this.#view.fileSources(series, this.#ofFiles.wanted);
    const row = this.#row;
    row.clear();
    const found = new SeriesMerge(sources, this.#ofFiles, row).next() !== undefined;
    const values = found ? row.columns().map((column) => column && scalarAt(column, 0)) : [];
    lastRows.keep(series, found ? row.times[0]! : -Infinity, values);
    return lastRows.timeOf(series);
  }
}
