/** What the exit code of `polyrow` says to programs. */
export const exitCodes = {
  ok: 0,
  /** It was tried, and did not work. */
  failed: 1,
  /** It was asked for wrongly: a flag, an argument, a setting. */
  usage: 2,
  /** What it was to be done to is not there. */
  missing: 3,
  /** What is there is in the way, as another of the same name. */
  conflict: 4,
  /** The token is missing, is wrong, or has not the right. */
  notAllowed: 5,
  /** No server answers. */
  unreachable: 6,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
