/** Shows which measurement is running. */
export interface Progress {
  step(what: string): void;
}

/** One line that is updated in place, on terminals. */
export function lineProgress(stream: NodeJS.WriteStream): Progress & { end(): void } {
  const isSeen = stream.isTTY;
  return {
    step: (what) => {
      if (isSeen) stream.write(`\r${what.padEnd(40)}`);
    },
    end: () => {
      if (isSeen) stream.write(`\r${' '.repeat(40)}\r`);
    },
  };
}
