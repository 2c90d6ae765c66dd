/** Exit codes of `polyrow`, for programs. */
export const exitCodes = {
  ok: 0,
  /** The operation was tried and failed. */
  failed: 1,
  /** Wrong usage: a flag, an argument, a setting. */
  usage: 2,
  /** The object of the operation does not exist. */
  missing: 3,
  /** An existing object is in the way, for example one of the same name. */
  conflict: 4,
  /** The token is missing, is wrong, or has not the right. */
  notAllowed: 5,
  /** No server answers. */
  unreachable: 6,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
