import { expect, test } from 'vitest';
import { frameHeaderBytes } from '../../universal-row/protocol/frames.ts';
import { Answers, AnswerSink } from './answers.ts';

/** A sink that keeps what it is given, and the memory of it. */
function sinkWith(isFree: () => boolean) {
  const sent: string[] = [];
  const memory = new Set<ArrayBufferLike>();
  const sink = new AnswerSink(
    (bytes) => {
      memory.add(bytes.buffer);
      sent.push(bytes.toString('latin1', frameHeaderBytes + 3));
      return isFree();
    },
    () => true,
  );
  return { answers: new Answers(sink), sent, memory };
}

function answer(answers: Answers, text: string): void {
  answers.open(1);
  answers.writer.raw(Buffer.from(text), 0, text.length);
}

test('answers that wait for a log use the same memory again once they are sent', () => {
  let isFree = true;
  const { answers, sent, memory } = sinkWith(() => isFree);
  for (let i = 0; i < 20; i++) {
    answer(answers, `${i}a`);
    const first = answers.hold();
    answer(answers, `${i}b`);
    const second = answers.hold();
    second('committed');
    first('committed');
  }
  expect(sent).toEqual(Array.from({ length: 20 }, (_, i) => [`${i}a`, `${i}b`]).flat());
  expect(memory.size).toBe(2);
  // The socket still holds the bytes.
  isFree = false;
  memory.clear();
  for (let i = 0; i < 5; i++) {
    answer(answers, `${i}`);
    answers.hold()('committed');
  }
  expect(memory.size).toBe(5);
});
