// Waiting for a state that has no event of its own.

/** Long enough for a machine that is ten times slower than usual: reached only when the state never comes. */
const limitMs = 60_000;

/** Asks every 10 ms until `isSo` holds. Throws after a minute, with the text of `isSo`. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`not within a minute: ${String(isSo)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
