/** What a server says last that cannot go on: lines of the highest level, or the text of what nobody caught. */
export function fatalLines(log: string): string[] {
  return log
    .split('\n')
    .filter(
      (line) =>
        line.includes('"level":60') || /^(Uncaught )?\w*Error(:| \[)|^FATAL ERROR/.test(line),
    );
}
