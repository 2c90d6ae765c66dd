// How long a string may become.

/**
 * Bytes; Redis's default for proto-max-bulk-len, which the server sets it to. Of the whole thread, as that setting is
 * about the whole server. Storing a string is one step, whose time grows with it.
 */
export const stringLimit = { bytes: 512 * 1024 * 1024 };
