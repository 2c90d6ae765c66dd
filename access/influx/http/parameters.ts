// Parameters of a request, out of its URL and, for /query, out of its form. An empty one is as good as none.

export class Parameters {
  readonly #values = new Map<string, string>();

  /** The first of a name counts. */
  constructor(query: string) {
    this.add(query);
  }

  /** More of them, urlencoded. Those that are there already stay, unless they are `stronger`. */
  add(encoded: string, stronger = false): void {
    const seen = new Set<string>();
    for (const part of encoded.split('&')) {
      if (part === '') continue;
      const equals = part.indexOf('=');
      const name = decode(equals < 0 ? part : part.slice(0, equals));
      const value = equals < 0 ? '' : decode(part.slice(equals + 1));
      if (seen.has(name) || value === '') continue;
      seen.add(name);
      if (stronger || !this.#values.has(name)) this.#values.set(name, value);
    }
  }

  set(name: string, value: string): void {
    if (value !== '') this.#values.set(name, value);
  }

  /** '' when absent. */
  get(name: string): string {
    return this.#values.get(name) ?? '';
  }
}

/** Bytes that are no UTF-8 become U+FFFD, and a stray percent sign stays one. */
function decode(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    const bytes = Buffer.from(spaced).toString('latin1');
    const decoded = bytes.replace(/%([0-9a-f]{2})/gi, (_all, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    return Buffer.from(decoded, 'latin1').toString();
  }
}

/**
 * The fields of a multipart form; the content of a file counts as the value of its field. What is not
 * well formed is left out.
 */
export function multipartFields(contentType: string, body: Buffer): Map<string, string> {
  const fields = new Map<string, string>();
  const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType);
  if (boundary === null) return fields;
  const delimiter = Buffer.from(`--${boundary[1] ?? boundary[2]}`);
  let start = body.indexOf(delimiter);
  while (start >= 0) {
    const from = start + delimiter.length;
    const end = body.indexOf(delimiter, from);
    if (end < 0) break;
    const part = body.subarray(from, end);
    const headEnd = part.indexOf('\r\n\r\n');
    if (headEnd >= 0) {
      const head = part.toString('utf8', 0, headEnd);
      const name = /^content-disposition:.*[;\s]name="([^"]*)"/im.exec(head)?.[1];
      if (name !== undefined && !fields.has(name)) {
        fields.set(name, part.toString('utf8', headEnd + 4, part.length - 2));
      }
    }
    start = end;
  }
  return fields;
}
