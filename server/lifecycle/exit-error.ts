/** Ends the process with one line for people and no stack: the user can do something about it. */
export class ExitError extends Error {
  override readonly name = 'ExitError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Error for a listener that could not be opened. `key` is the setting of the port. */
export function listenError(error: unknown, host: string, port: number, key: string): ExitError {
  const code = (error as NodeJS.ErrnoException).code;
  const hostKey = key.replace(/port$/, 'host');
  switch (code) {
    case 'EADDRINUSE':
      return new ExitError(
        `port ${port} on ${host} is in use by another program: stop it, or choose another port with --${key} (0 picks a free one)`,
      );
    case 'EACCES':
      return new ExitError(
        `no permission to listen on port ${port}: choose one above 1023 with --${key}`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new ExitError(`${host} is not an address of this machine: check --${hostKey}`);
    default:
      return new ExitError(
        `cannot listen on ${host} port ${port} (--${key}): ${error instanceof Error ? error.message : String(error)}`,
      );
  }
}
