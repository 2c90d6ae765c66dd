import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LongAnswer, RespWriter } from './resp-writer.ts';

function written(version: number, write: (reply: RespWriter) => void): string {
  const reply = new RespWriter(8);
  reply.version = version;
  write(reply);
  return reply.buf.toString('latin1', 0, reply.pos).replaceAll('\r\n', '|');
}

describe('replies', () => {
  const cases: [string, (reply: RespWriter) => void, string, string][] = [
    ['ok', (r) => r.ok(), '+OK|', '+OK|'],
    ['error', (r) => r.error('ERR a\r\nb'), '-ERR a  b|', '-ERR a  b|'],
    ['integer', (r) => r.integer(-1234567), ':-1234567|', ':-1234567|'],
    ['2^53', (r) => r.integer(2 ** 53 - 1), ':9007199254740991|', ':9007199254740991|'],
    [
      '2^63 - 1',
      (r) => r.bigInteger(2n ** 63n - 1n),
      ':9223372036854775807|',
      ':9223372036854775807|',
    ],
    ['bulk', (r) => r.bulk(Buffer.from('xabcx'), 1, 3), '$3|abc|', '$3|abc|'],
    ['text', (r) => r.text('é'), '$2|\u00c3\u00a9|', '$2|\u00c3\u00a9|'],
    ['nil', (r) => r.nil(), '$-1|', '_|'],
    ['nil array', (r) => r.nilArray(), '*-1|', '_|'],
    ['double', (r) => r.double(1.5), '$3|1.5|', ',1.5|'],
    ['whole double', (r) => r.double(-594971599), '$10|-594971599|', ',-594971599|'],
    ['infinity', (r) => r.double(-Infinity), '$4|-inf|', ',-inf|'],
    ['boolean', (r) => r.boolean(true), ':1|', '#t|'],
    ['map', (r) => r.map(2), '*4|', '%2|'],
    ['set', (r) => r.set(2), '*2|', '~2|'],
    ['push', (r) => r.push(2), '*2|', '>2|'],
    ['verbatim', (r) => r.verbatim('ab'), '$2|ab|', '=6|txt:ab|'],
  ];
  test.each(cases)('%s', (_name, write, second, third) => {
    expect(written(2, write)).toBe(second);
    expect(written(3, write)).toBe(third);
  });

  test('a header put in after its items', () => {
    const write = (reply: RespWriter): void => {
      reply.ok();
      const mark = reply.open();
      for (let i = 0; i < 12; i++) reply.integer(i);
      reply.close(mark, 'array', 12);
      reply.ok();
    };
    const items = Array.from({ length: 12 }, (_, i) => `:${i}|`).join('');
    expect(written(2, write)).toBe(`+OK|*12|${items}+OK|`);
  });

  test('what is rolled back was never written', () => {
    expect(
      written(2, (reply) => {
        reply.ok();
        const mark = reply.mark();
        reply.text('gone');
        reply.rollback(mark);
        reply.integer(1);
      }),
    ).toBe('+OK|:1|');
  });
});

test('a long answer can be divided anywhere, and both parts go on', () => {
  const lengths = fc.array(fc.nat(6000), { maxLength: 6 });
  fc.assert(
    fc.property(lengths, lengths, fc.nat(6), (before, after, at) => {
      const whole = new LongAnswer(undefined);
      const texts = before.map((length, i) => String.fromCharCode(97 + i).repeat(length));
      const marks = [0];
      for (const text of texts) {
        whole.text(text);
        marks.push(whole.mark());
      }
      const split = Math.min(at, texts.length);
      const rest = whole.fork(marks[split]!);
      expect([whole.length, rest.firstByte === undefined]).toEqual([
        marks[split],
        split === texts.length,
      ]);
      for (const length of after) rest.text('x'.repeat(length));
      whole.text('end');
      const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;
      const sent = (answer: LongAnswer): string => Buffer.concat(answer.take()).toString();
      expect(sent(whole)).toBe([...texts.slice(0, split), 'end'].map(bulk).join(''));
      const others = after.map((length) => 'x'.repeat(length));
      expect(sent(rest)).toBe([...texts.slice(split), ...others].map(bulk).join(''));
    }),
  );
});
