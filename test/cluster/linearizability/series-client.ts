// A client of one node that writes points of numbers to a database and reads them back.

const database = 'linearizability';
const timeoutMs = 15_000;

interface QueryAnswer {
  results: { error?: string; series?: { values: [time: number, value: number][] }[] }[];
}

export class SeriesClient {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  /** `consistency`: of reads, as the header `X-Polyrow-Consistency` has it; the database's unless given. */
  constructor(url: string, consistency?: string) {
    this.#url = url;
    this.#headers = consistency === undefined ? {} : { 'x-polyrow-consistency': consistency };
  }

  async createDatabase(): Promise<void> {
    await this.#post('/query', { q: `CREATE DATABASE ${database}` }, '');
  }

  /** Throws unless all lines were acknowledged. */
  async write(lines: readonly string[]): Promise<void> {
    await this.#post('/write', { db: database }, lines.join('\n'));
  }

  /** The values of the field `v` of the series with the tag `k`, in order of time, with commas between them. */
  async read(measurement: string, k: string): Promise<string> {
    const q = `SELECT v FROM "${measurement}" WHERE k='${k}'`;
    const text = await this.#post('/query', { db: database, epoch: 'ns', q }, '');
    const { results } = JSON.parse(text) as QueryAnswer;
    const [{ error, series }] = results as [QueryAnswer['results'][0]];
    if (error !== undefined) throw new Error(error);
    return (series ?? []).flatMap(({ values }) => values.map(([, value]) => value)).join();
  }

  async #post(path: string, parameters: Record<string, string>, body: string): Promise<string> {
    const query = new URLSearchParams(parameters).toString();
    const response = await fetch(`${this.#url}${path}?${query}`, {
      method: 'POST',
      headers: this.#headers,
      body,
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${text}`);
    return text;
  }
}
