// The least of a client of the InfluxDB protocol that a bench needs.

/** Makes the database where need be, writes a body of lines, and throws unless it was all taken. */
export async function postLines(
  port: number,
  db: string,
  body: string,
  precision: 'ns' | 'ms' | 's' = 'ns',
): Promise<void> {
  const write = (): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/write?db=${db}&precision=${precision}`, {
      method: 'POST',
      body,
    });
  let response = await write();
  if (response.status === 404) {
    await response.text();
    await ask(port, `CREATE DATABASE ${db}`, db);
    response = await write();
  }
  const text = await response.text();
  if (response.status !== 204) throw new Error(`a write was answered ${response.status}: ${text}`);
}

/** The answer to a statement, as JSON text; throws on any error in it. */
export async function ask(port: number, q: string, db: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/query`, {
    method: 'POST',
    body: new URLSearchParams({ db, q }),
  });
  const text = await response.text();
  if (response.status !== 200 || text.includes('"error"')) throw new Error(`${q}: ${text}`);
  return text;
}
