import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Arguments } from '../arguments.ts';
import { RowWork } from '../row-work.ts';
import {
  CommandFlag,
  CommandHead,
  readCommand,
  readSession,
  readWork,
  type Session,
  writeCommand,
  writeSession,
  writeWork,
} from './row-messages.ts';
import { WireError, WireReader, WireWriter } from './wire.ts';

function argumentsOf(words: readonly Uint8Array[]): Arguments {
  const args = new Arguments(1);
  args.reserve(words.length);
  args.buf = Buffer.concat(words);
  let at = 0;
  words.forEach((word, i) => {
    args.starts[i] = at;
    args.lens[i] = word.length;
    at += word.length;
  });
  args.count = words.length;
  return args;
}

function wordsOf(args: Arguments): Buffer[] {
  return Array.from({ length: args.count }, (_, i) => Buffer.from(args.bytes(i)));
}

const anyHead = fc.record({
  transform: fc.nat(500),
  flags: fc.nat(255),
  table: fc.maxSafeNat(),
  deadlineMs: fc.nat(60_000),
  sequence: fc.maxSafeNat(),
  client: fc.maxSafeNat(),
  rights: fc.string(),
});
const anyWords = fc.array(fc.uint8Array({ maxLength: 200 }), { minLength: 1, maxLength: 40 });

test('a command arrives as it was sent', () => {
  fc.assert(
    fc.property(anyHead, anyWords, (fields, words) => {
      const head = Object.assign(new CommandHead(), fields);
      const writer = new WireWriter(16);
      writeCommand(writer, head, argumentsOf(words));
      const reader = new WireReader(writer.view());
      const read = new CommandHead();
      const args = new Arguments(1);
      readCommand(reader, read, args);
      reader.done();
      expect(wordsOf(args)).toEqual(words.map((word) => Buffer.from(word)));
      expect([read.transform, read.flags]).toEqual([fields.transform, fields.flags]);
      if (fields.flags & CommandFlag.hasTable) expect(read.table).toBe(fields.table);
      if (fields.flags & CommandFlag.hasDeadline) expect(read.deadlineMs).toBe(fields.deadlineMs);
      if (fields.flags & CommandFlag.hasSequence) expect(read.sequence).toBe(fields.sequence);
      if (fields.flags & CommandFlag.hasClient) expect(read.client).toBe(fields.client);
      if (fields.flags & CommandFlag.hasRights) expect(read.rights).toBe(fields.rights);
      expect(args.hasWaited).toBe((fields.flags & CommandFlag.hasWaited) !== 0);
    }),
  );
});

test('the work of a command arrives, and is added up', () => {
  const names = Object.keys(new RowWork()) as (keyof RowWork)[];
  const anyWork = fc.array(
    fc.maxSafeNat().map((n) => n % 1e12),
    {
      minLength: names.length,
      maxLength: names.length,
    },
  );
  fc.assert(
    fc.property(fc.array(anyWork, { maxLength: 4 }), (all) => {
      const writer = new WireWriter();
      const sum = new RowWork();
      for (const counts of all) {
        const work = new RowWork();
        names.forEach((name, i) => {
          // Most are 0.
          const count = counts[i]! % 3 === 0 ? counts[i]! : 0;
          Object.assign(work, { [name]: count });
          Object.assign(sum, { [name]: (sum[name] as number) + count });
        });
        writeWork(writer, work);
      }
      const read = new RowWork();
      const reader = new WireReader(writer.view());
      for (let i = 0; i < all.length; i++) readWork(reader, read);
      reader.done();
      expect(read).toEqual(sum);
    }),
  );
});

test('a session arrives as it was sent', () => {
  const session: Session = {
    tenant: 7,
    table: 130,
    first: 128,
    count: 16,
    version: 3,
    epoch: 4_000_000_000,
    isMetered: true,
  };
  const writer = new WireWriter();
  writeSession(writer, 300, session);
  const reader = new WireReader(writer.view());
  expect([reader.u8(), reader.varint()]).toEqual([1, 300]);
  const read = { ...session, tenant: 0, table: 0, first: 0, count: 0, epoch: 0, isMetered: false };
  readSession(reader, read);
  reader.done();
  expect(read).toEqual(session);
});

test('random bytes are a command, or an error, and are not read past their end', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      for (const read of [
        (reader: WireReader) => readCommand(reader, new CommandHead(), new Arguments()),
        (reader: WireReader) => readWork(reader, new RowWork()),
        (reader: WireReader) => readSession(reader, {} as Session),
      ]) {
        const reader = new WireReader(Buffer.from(bytes));
        try {
          read(reader);
          expect(reader.pos).toBeLessThanOrEqual(bytes.length);
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }
    }),
  );
});
