// Encoding of series filters. Regular expressions are sent as source text and compiled again on the node of the series.

import { WireError, type WireReader, type WireWriter } from '../../universal-row/protocol/wire.ts';
import type { SeriesFilter } from '../series-store.ts';

const codes = { and: 1, or: 2, equal: 3, notEqual: 4, match: 5, notMatch: 6 } as const;
/** A query is parsed only to such a depth. */
const maxDepth = 2048;

/** Compiles a pattern in RE2's syntax; throws an error with a text for the client. */
export type CompilePattern = (source: string) => (value: string) => boolean;

export function writeFilter(writer: WireWriter, filter: SeriesFilter): void {
  writer.u8(codes[filter.kind]);
  switch (filter.kind) {
    case 'and':
    case 'or':
      writer.varint(filter.terms.length);
      for (const term of filter.terms) writeFilter(writer, term);
      break;
    case 'equal':
    case 'notEqual':
      writer.string(filter.tag);
      writer.string(filter.value);
      break;
    default:
      writer.string(filter.tag);
      writer.string(filter.pattern);
  }
}

export function readFilter(reader: WireReader, compile: CompilePattern, depth = 0): SeriesFilter {
  if (depth > maxDepth) throw new WireError('a filter is nested too deeply');
  const code = reader.u8();
  switch (code) {
    case codes.and:
    case codes.or: {
      const terms: SeriesFilter[] = [];
      const count = reader.varint();
      if (count > reader.left) throw new WireError('a message ends too early');
      for (let i = 0; i < count; i++) terms.push(readFilter(reader, compile, depth + 1));
      return { kind: code === codes.and ? 'and' : 'or', terms };
    }
    case codes.equal:
    case codes.notEqual: {
      const kind = code === codes.equal ? 'equal' : 'notEqual';
      return { kind, tag: reader.string(), value: reader.string() };
    }
    case codes.match:
    case codes.notMatch: {
      const kind = code === codes.match ? 'match' : 'notMatch';
      const tag = reader.string();
      const pattern = reader.string();
      return { kind, tag, pattern, matches: compile(pattern) };
    }
    default:
      throw new WireError('a filter is of no kind');
  }
}
