/** Last output of a server that fails: lines of the highest log level, or the text of an uncaught error. */
export function fatalLines(log: string): string[] {
  return log
    .split('\n')
    .filter(
      (line) =>
        line.includes('"level":60') || /^(Uncaught )?\w*Error(:| \[)|^FATAL ERROR/.test(line),
    );
}
