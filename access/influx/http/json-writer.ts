// Answers in JSON, byte for byte as InfluxDB's: keys in the order name, tags, columns, values, partial, and
// statement_id, series, messages, partial, error. Either one document for all statements, or (chunked) one
// a line for every so many rows of a series.

import type { Message, ResultSeries, Value } from '../influxql/result.ts';
import { type AnswerWriter, defaultChunkSize, notExecuted } from './answer-writer.ts';
import { type JsonMark, JsonText } from './json-text.ts';
import type { TextBuffer } from './text-buffer.ts';
import type { TimeWriter } from './time-text.ts';
import { offsetsOf } from './zone-offset.ts';

interface JsonOptions {
  times: TimeWriter;
  /** Indented by four spaces. */
  isPretty: boolean;
  /** Rows a document; undefined for one document of everything. */
  chunkSize: number | undefined;
}

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const closeBracket = 0x5d;

const noMessages: readonly Message[] = [];

export class JsonWriter implements AnswerWriter {
  readonly contentType = 'application/json';
  readonly out: TextBuffer;
  readonly #json: JsonText;
  readonly #times: TimeWriter;
  readonly #chunkSize: number | undefined;
  #statement = 0;
  #mark: JsonMark;
  #isResultOpen = false;
  #isSeriesOpen = false;
  /** Rows of the open series, in this document if there are several. */
  #rowCount = 0;
  #timeZone: string | undefined;
  /** Columns written last, and their JSON. */
  #named: readonly string[] | undefined;
  #names: Buffer = Buffer.alloc(0);

  constructor(options: JsonOptions) {
    this.#json = new JsonText(options.isPretty);
    this.out = this.#json.out;
    this.#times = options.times;
    this.#chunkSize = options.chunkSize;
    if (this.#chunkSize === undefined) this.#openDocument();
    this.#mark = this.#json.mark();
  }

  beginStatement(id: number): void {
    this.#statement = id;
    this.#mark = this.#json.mark();
  }

  rows(piece: ResultSeries, from: number, to: number): void {
    const isNew = !this.#isSeriesOpen || (from === 0 && !piece.continues);
    if (isNew) {
      if (this.#isSeriesOpen) this.#endSeries(false);
      this.#beginSeries(piece);
    }
    let next = from;
    while (next < to) {
      let end = to;
      if (this.#chunkSize !== undefined) {
        if (this.#rowCount === this.#chunkSize) {
          this.#endSeries(true);
          this.#beginSeries(piece);
        }
        end = Math.min(to, next + this.#chunkSize - this.#rowCount);
      }
      this.#values(piece, next, end);
      next = end;
    }
  }

  endStatement(messages: readonly Message[]): void {
    if (this.#isSeriesOpen) this.#closeSeries(false);
    this.#endResult(messages, false, undefined);
  }

  failStatement(error: string, skipped: number): void {
    if (this.#chunkSize !== undefined) {
      // The output so far stays; the error is a document of its own.
      if (this.#isSeriesOpen) this.#endSeries(false);
      this.#endResult(noMessages, false, error);
      for (let i = 0; i < skipped; i++) this.#endResult(noMessages, false, notExecuted);
      return;
    }
    if (this.#json.rewind(this.#mark)) {
      this.#isSeriesOpen = false;
      this.#isResultOpen = false;
    } else if (this.#isSeriesOpen) this.#closeSeries(false);
    this.#endResult(noMessages, false, skipped > 0 ? notExecuted : error);
  }

  finish(): void {
    if (this.#chunkSize === undefined) this.#closeDocument();
  }

  // ---- documents and results

  #openDocument(): void {
    this.#json.element();
    this.#json.open('{');
    this.#json.element('results');
    this.#json.open('[');
  }

  #closeDocument(): void {
    this.#json.close(']');
    this.#json.close('}');
    this.#json.endDocument();
  }

  #openResult(): void {
    if (this.#chunkSize !== undefined) this.#openDocument();
    this.#json.element();
    this.#json.open('{');
    this.#json.element('statement_id');
    this.out.integer(this.#statement);
    this.#isResultOpen = true;
  }

  /** With its series, if it has any, closed but not their list. */
  #endResult(messages: readonly Message[], isPartial: boolean, error: string | undefined): void {
    const json = this.#json;
    if (this.#isResultOpen) json.close(']');
    else this.#openResult();
    if (messages.length > 0) this.#messages(messages);
    if (isPartial) this.#truth('partial');
    if (error !== undefined) {
      json.element('error');
      this.out.quoted(error);
    }
    json.close('}');
    this.#isResultOpen = false;
    if (this.#chunkSize !== undefined) this.#closeDocument();
  }

  #messages(messages: readonly Message[]): void {
    const json = this.#json;
    json.element('messages');
    json.open('[');
    for (const { level, text } of messages) {
      json.element();
      json.open('{');
      json.element('level');
      this.out.quoted(level);
      json.element('text');
      this.out.quoted(text);
      json.close('}');
    }
    json.close(']');
  }

  #truth(key: string): void {
    this.#json.element(key);
    this.out.ascii('true');
  }

  // ---- series

  #beginSeries(piece: ResultSeries): void {
    const json = this.#json;
    if (!this.#isResultOpen) {
      this.#openResult();
      json.element('series');
      json.open('[');
    }
    json.element();
    json.open('{');
    if (piece.name !== undefined && piece.name !== '') {
      json.element('name');
      this.out.quoted(piece.name);
    }
    if (piece.tags !== undefined && piece.tags.length > 0) {
      json.element('tags');
      json.open('{');
      for (const [key, value] of piece.tags) {
        json.element(key);
        this.out.quoted(value);
      }
      json.close('}');
    }
    json.element('columns');
    this.#columnNames(piece.columns);
    if (piece.timeZone !== this.#timeZone) {
      this.#timeZone = piece.timeZone;
      this.#times.zone = offsetsOf(piece.timeZone);
    }
    this.#isSeriesOpen = true;
    this.#rowCount = 0;
  }

  /** Answers of many series have the same ones again and again. */
  #columnNames(columns: readonly string[]): void {
    const { out } = this;
    if (columns === this.#named && !this.#json.isPretty) {
      this.#json.value(this.#names);
      return;
    }
    const start = out.length;
    this.#json.open('[');
    for (const column of columns) {
      this.#json.element();
      out.quoted(column);
    }
    this.#json.close(']');
    this.#named = columns;
    this.#names = Buffer.from(out.buf.subarray(start, out.length));
  }

  /** The next one, or more of the same, follows; in a document of its own where there are several. */
  #endSeries(isPartial: boolean): void {
    this.#closeSeries(isPartial);
    if (this.#chunkSize !== undefined) this.#endResult(noMessages, true, undefined);
  }

  #closeSeries(isPartial: boolean): void {
    const json = this.#json;
    if (this.#rowCount > 0) json.close(']');
    // InfluxDB puts a long answer together from parts, and the first one's mark stays on it.
    const wasJoined = this.#chunkSize === undefined && this.#rowCount > defaultChunkSize;
    if (isPartial || wasJoined) this.#truth('partial');
    json.close('}');
    this.#isSeriesOpen = false;
  }

  #values(piece: ResultSeries, from: number, to: number): void {
    if (this.#rowCount === 0) {
      this.#json.element('values');
      this.#json.open('[');
    }
    if (this.#json.isPretty) {
      for (let row = from; row < to; row++) this.#prettyRow(piece, row);
    } else {
      for (let row = from; row < to; row++) this.#row(piece, row);
    }
    this.#rowCount += to - from;
  }

  #row(piece: ResultSeries, row: number): void {
    const { out } = this;
    const { time, values } = piece;
    this.#json.element();
    out.byte(openBracket);
    if (time !== undefined) this.#time(time.base, time.offsets[row]!);
    for (let c = 0; c < values.length; c++) {
      if (c > 0 || time !== undefined) out.byte(comma);
      this.#value(values[c]![row]!);
    }
    out.byte(closeBracket);
  }

  #prettyRow(piece: ResultSeries, row: number): void {
    const json = this.#json;
    const { time, values } = piece;
    json.element();
    json.open('[');
    if (time !== undefined) {
      json.element();
      this.#time(time.base, time.offsets[row]!);
    }
    for (const column of values) {
      json.element();
      this.#value(column[row]!);
    }
    json.close(']');
  }

  #time(base: number, offset: number): void {
    const { out } = this;
    if (!this.#times.isText) {
      this.#times.write(out, base, offset);
      return;
    }
    out.byte(quote);
    this.#times.write(out, base, offset);
    out.byte(quote);
  }

  #value(value: Value): void {
    const { out } = this;
    if (typeof value === 'number') out.number(value);
    else if (value === null) out.ascii('null');
    else if (typeof value === 'string') out.quoted(value);
    else out.ascii(String(value));
  }
}
