// Answers as comma-separated values, as InfluxDB gives them for `Accept: application/csv`: a header, then
// a line a row with the series' name and tags in front. Errors of statements do not show.

import type { ResultSeries, Value } from '../influxql/result.ts';
import type { AnswerWriter } from './answer-writer.ts';
import { plainFloat, TextBuffer } from './text-buffer.ts';
import type { TimeWriter } from './time-text.ts';
import { offsetsOf } from './zone-offset.ts';

const comma = 0x2c;
const newline = 0x0a;

export class CsvWriter implements AnswerWriter {
  readonly contentType = 'text/csv';
  readonly out = new TextBuffer();
  readonly #times: TimeWriter;
  /** Columns of the last header; undefined before the statement's first series. */
  #columns: readonly string[] | undefined;
  #hasLines = false;
  /** Name and tags of the series, for the start of each line. */
  #prefix = '';

  constructor(times: TimeWriter) {
    this.#times = times;
  }

  beginStatement(): void {
    this.#columns = undefined;
  }

  rows(piece: ResultSeries, from: number, to: number): void {
    if (from === 0) this.#beginPiece(piece);
    const { out } = this;
    const { time, values } = piece;
    for (let row = from; row < to; row++) {
      out.text(this.#prefix);
      if (time !== undefined) {
        out.byte(comma);
        this.#times.write(out, time.base, time.offsets[row]!);
      }
      for (const column of values) {
        out.byte(comma);
        out.text(csvValue(column[row]!));
      }
      out.byte(newline);
    }
  }

  endStatement(): void {}

  failStatement(): void {}

  finish(): void {}

  #beginPiece(piece: ResultSeries): void {
    const { out } = this;
    if (this.#columns === undefined || !sameTexts(this.#columns, piece.columns)) {
      if (this.#hasLines) out.byte(newline);
      this.#hasLines = true;
      this.#columns = piece.columns;
      out.text(`name,tags,${piece.columns.map(csvField).join(',')}\n`);
    }
    const tags = (piece.tags ?? [])
      .filter(([, value]) => value !== '')
      .map(([key, value]) => `${escapeTag(key)}=${escapeTag(value)}`);
    this.#prefix = `${csvField(piece.name ?? '')},${csvField(tags.join(','))}`;
    this.#times.zone = offsetsOf(piece.timeZone);
  }
}

function csvValue(value: Value): string {
  if (value === null) return '';
  if (typeof value === 'number') return plainFloat(value);
  return typeof value === 'string' ? csvField(value) : String(value);
}

/** Quoted where Go's writer quotes: also before a leading space. */
export function csvField(text: string): string {
  if (!/[",\r\n]|^\s|^\\\.$/u.test(text)) return text;
  return `"${text.replaceAll('"', '""')}"`;
}

function escapeTag(text: string): string {
  return text.replace(/[,= ]/g, '\\$&');
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}
