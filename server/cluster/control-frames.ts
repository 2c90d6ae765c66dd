// Questions between control planes, on links for `control` and `join`. Frame types and their
// payloads:
//
//   80 question  the name of the question as a string, then its body
//   81 answer    the body
//   82 refusal   JSON {"message", "code"?}
//
// A question's stream is its number on the link, and its answer's.

import { beginFrame, endFrame, maxFrameBytes } from '../../universal-row/protocol/frames.ts';
import { WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';

export const ControlFrame = { question: 80, answer: 81, refusal: 82 } as const;

export const controlPurpose = 'control';

/** Largest question or answer. */
export const maxBodyBytes = maxFrameBytes - 1024;

export interface Refusal {
  message: string;
  code?: string;
}

export function questionFrame(id: number, name: string, body: Uint8Array): Buffer {
  return frame(ControlFrame.question, id, body, name);
}

export function answerFrame(id: number, body: Uint8Array): Buffer {
  return frame(ControlFrame.answer, id, body);
}

export function refusalOf(id: number, refusal: Refusal): Buffer {
  return frame(ControlFrame.refusal, id, Buffer.from(JSON.stringify(refusal)));
}

function frame(type: number, id: number, body: Uint8Array, name?: string): Buffer {
  const writer = new WireWriter(body.length + 512);
  const start = beginFrame(writer, type, id);
  if (name !== undefined) writer.string(name);
  writer.raw(Buffer.from(body.buffer, body.byteOffset, body.length), 0, body.length);
  endFrame(writer, start);
  return writer.view();
}

/** The body is a copy. Throws a `WireError`. */
export function readQuestion(
  buf: Buffer,
  start: number,
  end: number,
): { name: string; body: Buffer } {
  const reader = new WireReader(buf, start, end);
  const name = reader.string();
  return { name, body: Buffer.from(buf.subarray(reader.pos, end)) };
}

export function readRefusal(buf: Buffer, start: number, end: number): Refusal {
  const told: unknown = parsed(buf.toString('utf8', start, end));
  const { message, code } = (told ?? {}) as Partial<Record<keyof Refusal, unknown>>;
  return {
    message: typeof message === 'string' ? message : 'refused',
    ...(typeof code === 'string' ? { code } : {}),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
