// Groups queries whose texts differ only in values, such as the times that a dashboard asks about.

/** Beyond these many characters nothing is looked at. */
const looksAt = 4096;
/** Numbers from so many digits on are values as times are; smaller ones say how much is asked for. */
const valueDigits = 5;

const quote = 0x27;
const doubleQuote = 0x22;
const backslash = 0x5c;
/** Stands for a number. */
const digits = 0x23;

/** A number that is the same for texts that are alike. */
export function statementKind(text: string): number {
  const end = Math.min(text.length, looksAt);
  let hash = 0x811c9dc5;
  let at = 0;
  while (at < end) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = afterQuoted(text, at, end);
      hash = mixed(hash, quote);
      continue;
    }
    if (code === doubleQuote) {
      // A name, in which digits are not a value.
      const past = afterQuoted(text, at, end);
      while (at < past) hash = mixed(hash, text.charCodeAt(at++));
      continue;
    }
    if (isDigit(code)) {
      let past = at + 1;
      while (past < end && isDigit(text.charCodeAt(past))) past++;
      if (past - at >= valueDigits) hash = mixed(hash, digits);
      else for (let i = at; i < past; i++) hash = mixed(hash, text.charCodeAt(i));
      at = past;
      continue;
    }
    hash = mixed(hash, code);
    at++;
  }
  return hash | 0;
}

function afterQuoted(text: string, from: number, end: number): number {
  const mark = text.charCodeAt(from);
  let at = from + 1;
  while (at < end && text.charCodeAt(at) !== mark) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return Math.min(at + 1, end);
}

function mixed(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193);
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
