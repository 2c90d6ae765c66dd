import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Parameters } from './parameters.ts';

async function ofForm(body: Buffer): Promise<Parameters> {
  const parameters = new Parameters('q=url&u=v');
  await parameters.addForm(body);
  return parameters;
}

test('texts are decoded as decodeURIComponent does, of a URL and of a form', async () => {
  const property = fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
    const encoded = encodeURIComponent(text);
    for (const one of [encoded, encoded.replaceAll('%20', '+')]) {
      expect(new Parameters(`a=b&q=${one}`).get('q')).toBe(text);
      expect((await ofForm(Buffer.from(`a=b&q=${one}`))).get('q')).toBe(text === '' ? 'url' : text);
    }
  });
  await fc.assert(property);
});

test('stray percent signs stay, and bytes that are no UTF-8 are replaced', async () => {
  for (const [encoded, text] of [
    ['%', '%'],
    ['%4', '%4'],
    ['1%zz%41', '1%zzA'],
    ['%ff%41', '\ufffdA'],
    ['%c3%a4+%', 'ä %'],
  ] as const) {
    expect(new Parameters(`q=${encoded}`).get('q')).toBe(text);
    expect((await ofForm(Buffer.from(`q=${encoded}`))).get('q')).toBe(text);
  }
  const unencoded = await ofForm(Buffer.from('q=ä&u=w'));
  expect([unencoded.get('q'), unencoded.get('u')]).toEqual(['ä', 'w']);
});

test('a long form is decoded in slices, in which others are served', async () => {
  const unit = 'a%41+%C3%A4%';
  const count = 100_000;
  let isOver = false;
  const done = ofForm(Buffer.from(`q=${unit.repeat(count)}`)).finally(() => (isOver = true));
  let rounds = 0;
  for (; !isOver; rounds++) await new Promise(setImmediate);
  expect((await done).get('q')).toBe('aA ä%'.repeat(count));
  expect(rounds).toBeGreaterThanOrEqual((unit.length * count) / (64 * 1024));
});
