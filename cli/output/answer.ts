// What a command answers: JSON for programs, else text for people.

export interface Shown {
  json?: true;
}

/** Prints `value` as one line of JSON, or what `text` makes of it. */
export async function answer<T>(
  { json }: Shown,
  value: T,
  text: (value: T) => string | Promise<string>,
): Promise<void> {
  process.stdout.write(`${json ? JSON.stringify(value) : await text(value)}\n`);
}

/** Something to know beside the answer, which programs that read the answer need not see. */
export function remark(text: string): void {
  process.stderr.write(`${text}\n`);
}
