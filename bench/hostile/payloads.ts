// The worst known inputs, by target. The bench sends them to a server; the tests count the work of
// their readers. Each takes a size, so that growth can be measured.

import { gzipSync } from 'node:zlib';

/** Counted alternations within counted groups: states multiply where a matcher unfolds them. */
export function countedPattern(repeats = 40): string {
  const group = '(a|b|ab|ba|aab|bba|abab|baba){1,20}';
  return `^(${group}|${group}){1,${repeats}}c$`.padEnd(368, '.');
}

/** A tag's value that such a pattern goes through to its end, and does not match. */
export function almostMatching(bytes: number): string {
  return 'ab'.repeat(bytes >> 1);
}

/** A field value that begins like a number again and again. */
export function exponents(bytes: number): string {
  return `${'e'.repeat(bytes)}!`;
}

/** Digits that turn out to be no number at their end. */
export function digits(bytes: number): string {
  return `${'1'.repeat(bytes)}x`;
}

export function badLine(value: string): string {
  return `m v=${value}\n`;
}

/** A form whose body is all but its boundary, over and over. */
export function multipartForm(boundaryBytes: number, bodyBytes: number): MultipartForm {
  const boundary = `${'-'.repeat(boundaryBytes - 1)}x`;
  const almost = `\r\n--${'-'.repeat(boundaryBytes - 1)}y`;
  const body = `--${boundary}\r\n${almost.repeat(Math.ceil(bodyBytes / almost.length))}`;
  return { contentType: `multipart/form-data; boundary=${boundary}`, body: Buffer.from(body) };
}

/** The same with a body of the boundary's own first character only. */
export function dashedForm(boundaryBytes: number, bodyBytes: number): MultipartForm {
  const boundary = `${'-'.repeat(boundaryBytes - 1)}x`;
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.from(`--${boundary}\r\n\r\n${'-'.repeat(bodyBytes)}`),
  };
}

export interface MultipartForm {
  contentType: string;
  body: Buffer;
}

/** A glob with many stars, and a name that matches all but its end. */
export function globPattern(stars: number): string {
  return `${'*a'.repeat(stars)}*b`;
}

/** One star and much behind it. */
export function longGlob(bytes: number): string {
  return `*${'a'.repeat(bytes)}b`;
}

/** Values of `params` that open one string after the other. */
export function quotedParams(bytes: number): string {
  return `{"a":"${'\\"'.repeat(bytes >> 1)}`;
}

export function bareQuotes(bytes: number): string {
  return '"'.repeat(bytes);
}

/** A body that is a thousand times its length once unpacked: one line that never ends. */
export function packedLine(unpackedBytes: number): Buffer {
  return gzipSync(Buffer.alloc(unpackedBytes, 'a'));
}

/** A packed body of short lines: as long, but each could be stored. */
export function packedLines(unpackedBytes: number): Buffer {
  const line = 'm v=1 1\n';
  return gzipSync(Buffer.alloc(unpackedBytes, line));
}

/** InfluxQL of this length that is one statement. */
export function nestedQuery(bytes: number): string {
  const depth = Math.floor(bytes / 2);
  return `SELECT ${'('.repeat(depth)}v${')'.repeat(depth)} FROM m`;
}

export function longCondition(bytes: number): string {
  const term = ' OR a=1';
  return `SELECT v FROM m WHERE a=0${term.repeat(Math.floor(bytes / term.length))}`;
}

export function manyStatements(bytes: number): string {
  const one = 'SELECT v FROM m;';
  return one.repeat(Math.floor(bytes / one.length));
}

/** An ACL rule set as large as it may be: many key patterns. */
export function aclRules(bytes: number): string[] {
  const rules: string[] = [];
  for (let n = 0, length = 0; length < bytes; n++) {
    const rule = `~${String(n).padStart(60, 'k')}*`;
    rules.push(rule);
    length += rule.length;
  }
  return rules;
}
