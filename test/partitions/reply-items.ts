import type { RespValue } from '../support/resp-value.ts';

export function items(reply: RespValue): RespValue[] {
  if (!('items' in reply)) throw new TypeError(`not a list: ${JSON.stringify(reply)}`);
  return reply.items;
}

export function text(reply: RespValue): string {
  if (!('text' in reply)) throw new TypeError(`not a text: ${JSON.stringify(reply)}`);
  return reply.text;
}

export function texts(reply: RespValue): string[] {
  return items(reply).map(text);
}
