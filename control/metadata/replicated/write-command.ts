// A write of documents as an entry of the log, and its outcome:
//
//   u32 LE bytes of the head | head, JSON | the bodies as JSON texts, one behind the other
//
// Replicas apply bodies without parsing them.

import type { DocumentWrite } from '../document-store.ts';

const formatVersion = 1;

export interface WriteCommand {
  /** Drawn for the write, and the same each time it is proposed. */
  id: string;
  /** Commands that were applied where the write was made when it was made. */
  since: number;
  writes: CommandWrite[];
}

interface CommandWrite {
  collection: string;
  id: string;
  expected: number;
  /** The body as JSON; undefined removes. */
  text: string | undefined;
}

export type WriteResult =
  /** All were made, with revisions from `first` on. */
  | { kind: 'written'; first: number; count: number }
  /** None was made. */
  | { kind: 'conflict'; collection: string; id: string; expected: number; found: number }
  /** None was made by this command, the `commands`-th; whether an earlier one with the same id did is forgotten. */
  | { kind: 'forgotten'; commands: number };

interface Head {
  version: number;
  id: string;
  since: number;
  /** Bytes of the body, -1 for a removal. */
  writes: [collection: string, id: string, expected: number, bytes: number][];
}

/** `texts` are the bodies as JSON, in the order of the writes. */
export function encodeCommand(
  id: string,
  since: number,
  writes: readonly DocumentWrite[],
  texts: readonly (string | undefined)[],
): Buffer {
  const bodies = texts.map((text) => (text === undefined ? undefined : Buffer.from(text)));
  const head: Head = {
    version: formatVersion,
    id,
    since,
    writes: writes.map((write, i) => [
      write.collection,
      write.id,
      write.expected,
      bodies[i]?.length ?? -1,
    ]),
  };
  const headBytes = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(headBytes.length);
  return Buffer.concat([length, headBytes, ...bodies.filter((body) => body !== undefined)]);
}

/** Throws for commands that no program of this version has written. */
export function decodeCommand(bytes: Uint8Array): WriteCommand {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const headEnd = 4 + buffer.readUInt32LE(0);
  const head = JSON.parse(buffer.toString('utf8', 4, headEnd)) as Head;
  if (head.version !== formatVersion) {
    throw new Error(`a write of metadata in format ${head.version}, which a newer program made`);
  }
  let at = headEnd;
  const writes = head.writes.map(([collection, id, expected, length]): CommandWrite => {
    if (length < 0) return { collection, id, expected, text: undefined };
    const text = buffer.toString('utf8', at, at + length);
    at += length;
    return { collection, id, expected, text };
  });
  if (at !== buffer.length) throw new Error('a write of metadata has another length than it says');
  return { id: head.id, since: head.since, writes };
}
