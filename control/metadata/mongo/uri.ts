// The connection string of a MongoDB deployment, as the setting has it.

/** Database that the URI names, or `polyrow`. */
export function databaseOf(uri: string): string {
  const [, name] = /^[^:]+:\/\/[^/]*\/([^?]*)/.exec(uri) ?? [];
  return name ? decodeURIComponent(name) : 'polyrow';
}

/** Without user, password and options: for logs and messages. */
export function shownUri(uri: string): string {
  const [, start = 'mongodb://'] = /^([^:]+:\/\/)/.exec(uri) ?? [];
  // The last @, for a password that should have been escaped may have some of its own.
  const rest = uri.slice(Math.max(start.length, uri.lastIndexOf('@') + 1));
  return `${start}${/^[^/?]*/.exec(rest)![0]}`;
}
