// Values, and operations on rows of any shape: put, create, drop, expire.

import assert from 'node:assert/strict';
import { Slice } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import {
  everyByte,
  noise,
  oneMegabyte,
  range,
  readCase,
  writeCase,
  type ConformanceCase,
  type RowsByKey,
} from './case.ts';
import { array, expiring, map, ranked, set, stream, value, type RowContent } from './contents.ts';

const at = 1_900_000_000_000;

/** A small row of each shape. */
export const samples: readonly (readonly [name: string, content: RowContent])[] = [
  ['value', value('bytes')],
  ['map', map('f', '1', 'g', '2', '', 'empty')],
  ['set', set('a', 'b', '7')],
  ['ranked', ranked('a', 1, 'b', -2.5, 'c', 1)],
  ['array', array('x', 'y', '', 'x')],
  ['stream', stream('state', 'a', '1', 'b', '')],
];

/** The same, beyond any compact form. */
export const largeSamples: readonly (readonly [name: string, content: RowContent])[] = [
  ['value', value(noise(100_000))],
  ['map', map(...range(600).flatMap((i) => [`f${i}`, `value ${i}`]))],
  ['set', set(...range(600).map((i) => `member ${i}`))],
  ['ranked', ranked(...range(600).flatMap((i) => [`m${i}`, i % 7]))],
  ['array', array(...range(600).map((i) => `element ${i}`))],
  ['stream', stream('state', ...range(600).flatMap((i) => [`r${i}`, `value ${i}`]))],
];

const puts: ConformanceCase[] = [
  ...(
    [
      ['a value', '', 'v', 'k'],
      ['an empty value', '', '', 'k'],
      ['under an empty key', '', 'v', ''],
      ['under an empty key an empty value', 'old', '', ''],
      ['a shorter value over one', 'a longer value', 'v', 'k'],
      ['a longer value over one', 'v', 'a longer value', 'k'],
      ['a value as long over one', 'one', 'two', 'k'],
      ['the same value again', 'one', 'one', 'k'],
      ['an integer', '', '-9223372036854775808', 'k'],
      ['every byte', '', everyByte.join(''), everyByte.join('')],
      ['1 MB', '', noise(oneMegabyte), 'k'],
      ['1 MB over a small value', 'small', noise(oneMegabyte), 'k'],
      ['a small value over 1 MB', noise(oneMegabyte), 'small', 'k'],
      ['a value under a key of 1 MB', 'old', 'v', noise(oneMegabyte)],
    ] as const
  ).map(([name, old, bytes, key]) =>
    writeCase({
      name: `put: ${name}`,
      given: old === '' ? {} : { [key]: value(old) },
      when: (v) => v.value(v.keyOf(v.put(key, bytes))),
      answers: bytes,
      then: { [key]: value(bytes) },
    }),
  ),
  writeCase({
    name: 'put: the expiry is the one given',
    when: (v) => v.put('k', 'v', at),
    then: { k: expiring(value('v'), at) },
  }),
  writeCase({
    name: 'put: takes an expiry away',
    given: { k: expiring(value('v'), at) },
    when: (v) => v.put('k', 'w'),
    then: { k: value('w') },
  }),
  writeCase({
    name: 'put: changes an expiry',
    given: { k: expiring(value('v'), at) },
    when: (v) => v.put('k', 'v', at + 1),
    then: { k: expiring(value('v'), at + 1) },
  }),
  ...[...samples, ...largeSamples.map(([name, c]) => [`large ${name}`, c] as const)].map(
    ([name, content]) =>
      writeCase({
        name: `put: over a ${name} with an expiry`,
        given: { k: expiring(content, at), other: content },
        when: (v) => v.put('k', 'v'),
        then: { k: value('v'), other: content },
      }),
  ),
  writeCase({
    name: 'put: a key of each byte',
    when: (v) => {
      for (const byte of everyByte) v.put(byte, byte);
    },
    then: Object.fromEntries(everyByte.map((byte) => [byte, value(byte)])),
  }),
  writeCase({
    name: 'put: values of 0 to 300 bytes',
    when: (v) => range(301).forEach((n) => v.put(`k${n}`, noise(n, n))),
    then: Object.fromEntries(range(301).map((n) => [`k${n}`, value(noise(n, n))])),
  }),
  writeCase({
    name: 'put: keys of 0 to 300 bytes',
    when: (v) => range(301).forEach((n) => v.put('k'.repeat(n), `${n}`)),
    then: Object.fromEntries(range(301).map((n) => ['k'.repeat(n), value(`${n}`)])),
  }),
  writeCase({
    name: 'put: a value that doubles and halves',
    when: (v) => {
      for (const size of [1, 2, 4, 64, 1024, 70_000, 300_000, 70_000, 512, 5]) {
        v.put('k', noise(size));
        assert.equal(v.value('k'), noise(size));
      }
    },
    then: { k: value(noise(5)) },
  }),
  ...[0, 1, 5, 20, 60, 200, 5000, 200_000].map((size) =>
    writeCase({
      name: `put: ${size} bytes that a read of another row points at`,
      given: { from: value(noise(size)), to: value('old') },
      when: (v) => {
        const out = new Slice();
        v.table.value(v.row('from'), out);
        v.putSlice('to', out);
        v.table.value(v.row('from'), out);
        v.putSlice('new', out, at);
      },
      then: {
        from: value(noise(size)),
        to: value(noise(size)),
        new: expiring(value(noise(size)), at),
      },
    }),
  ),
  ...[5, 60, 5000].map((size) =>
    writeCase({
      name: `put: a part of the ${size} bytes of the row itself`,
      given: { k: value(noise(size)) },
      when: (v) => {
        const out = new Slice();
        v.table.value(v.row('k'), out);
        out.set(out.b, out.s + 2, out.n - 3);
        v.putSlice('k', out);
      },
      then: { k: value(noise(size).slice(2, -1)) },
    }),
  ),
  writeCase({
    name: 'put: a field of a map that is replaced by it',
    given: { k: map('f', 'the value') },
    when: (v) => {
      const out = new Slice();
      const name = Buffer.from('f');
      assert.ok(v.table.field(v.row('k'), name, 0, 1, out));
      v.putSlice('k', out);
    },
    then: { k: value('the value') },
  }),
];

const patches: ConformanceCase[] = (
  [
    ['the middle', 'abcdef', 2, 'XY', 'abXYef'],
    ['the start', 'abcdef', 0, 'X', 'Xbcdef'],
    ['all of it', 'abc', 0, 'XYZ', 'XYZ'],
    ['the end', 'abc', 3, 'XY', 'abcXY'],
    ['over the end', 'abc', 2, 'XY', 'abXY'],
    ['beyond the end, with zeros between', 'abc', 6, 'X', 'abc\0\0\0X'],
    ['an empty value', '', 0, 'X', 'X'],
    ['an empty value, from 3', '', 3, 'X', '\0\0\0X'],
    ['by bytes of every kind', 'abc', 1, '\0\xff\r\n', 'a\0\xff\r\n'],
    ['a large value', noise(oneMegabyte), 500_000, 'X', ''],
    ['far beyond the end', 'abc', 200_000, 'X', `abc${'\0'.repeat(199_997)}X`],
    ['up to 600 KB', noise(300), 300, noise(600_000), noise(300) + noise(600_000)],
  ] as const
).map(([name, old, offset, patch, then]) => {
  const patched = then || old.slice(0, offset) + patch + old.slice(offset + patch.length);
  return writeCase({
    name: `patch: ${name}`,
    given: { k: expiring(value(old), at), other: value(old) },
    when: (v) => v.patch('k', offset, patch),
    then: { k: expiring(value(patched), at), other: value(old) },
  });
});

/** Values that come in parts, over rows of every shape. */
const reserved = samples.flatMap(([name, old]) =>
  [10, 1000, 300_000].map((size) =>
    writeCase({
      name: `reserve: ${size} bytes over a ${name}`,
      given: { k: expiring(old, at), other: value('other') },
      when: (v) => v.putInParts('k', noise(size), Math.ceil(size / 3), at + 1),
      then: { k: expiring(value(noise(size)), at + 1), other: value('other') },
    }),
  ),
);

const appended = range(400).map((i) => `${i},`);

const creates: ConformanceCase[] = [
  writeCase({
    name: 'patch: a value that grows by small appends',
    given: { k: value('') },
    when: (v) => {
      let length = 0;
      for (const part of appended) {
        v.patch('k', length, part);
        length += part.length;
      }
      return v.table.count(v.row('k'));
    },
    answers: appended.join('').length,
    then: { k: value(appended.join('')) },
  }),
  ...samples.slice(1).flatMap(([into, content]) =>
    samples.map(([from, old]) =>
      writeCase({
        name: `create: a ${into} in place of a ${from} with an expiry`,
        given: { k: expiring(old, at), other: old },
        when: (v) => v.fill('k', content),
        then: { k: content, other: old },
      }),
    ),
  ),
];

const drops: ConformanceCase[] = [
  ...samples.flatMap(([name, content]) => [
    writeCase({
      name: `drop: a ${name}`,
      given: { k: content, other: content },
      when: (v) => {
        const row = v.row('k');
        v.table.drop(row);
        return [v.find('k'), v.table.rowCount()];
      },
      answers: [0, 1],
      then: { other: content },
    }),
    writeCase({
      name: `drop: a ${name} with an expiry, made again in the same step`,
      given: { k: expiring(content, at) },
      when: (v) => {
        v.drop('k');
        v.fill('k', content);
      },
      then: { k: content },
    }),
  ]),
  ...largeSamples.map(([name, content]) =>
    writeCase({
      name: `drop: a large ${name}`,
      given: { k: content, other: content },
      when: (v) => v.drop('k'),
      then: { other: content },
    }),
  ),
  writeCase({
    name: 'drop: the only row under an empty key',
    given: { '': value('') },
    when: (v) => v.drop(''),
    then: {},
  }),
  writeCase({
    name: 'drop: every second of 500 rows',
    given: Object.fromEntries(range(500).map((i) => [`k${i}`, value(`${i}`)])),
    when: (v) => range(250).forEach((i) => v.drop(`k${i * 2}`)),
    then: Object.fromEntries(range(250).map((i) => [`k${i * 2 + 1}`, value(`${i * 2 + 1}`)])),
  }),
];

const expiries: ConformanceCase[] = [
  ...samples.map(([name, content]) =>
    writeCase({
      name: `expire: a ${name} is given an expiry`,
      given: { k: content },
      when: (v) => {
        v.expire('k', at);
        return v.table.expireAt(v.row('k'));
      },
      answers: at,
      then: { k: expiring(content, at) },
    }),
  ),
  ...samples.map(([name, content]) =>
    writeCase({
      name: `expire: a ${name} is relieved of its expiry`,
      given: { k: expiring(content, at) },
      when: (v) => v.expire('k', 0),
      then: { k: content },
    }),
  ),
  writeCase({
    name: 'expire: 0 for a row that has none',
    given: { k: value('v') },
    when: (v) => v.expire('k', 0),
    then: { k: value('v') },
  }),
  writeCase({
    name: 'expire: the past, and the far future; an engine hides nothing',
    given: { a: value('v'), b: set('m') },
    when: (v) => {
      v.expire('a', 1);
      v.expire('b', 2 ** 53 - 1);
    },
    then: { a: expiring(value('v'), 1), b: expiring(set('m'), 2 ** 53 - 1) },
  }),
  writeCase({
    name: 'expire: the last of many wins',
    given: { k: value('v') },
    when: (v) => range(50).forEach((i) => v.expire('k', at - i * 7)),
    then: { k: expiring(value('v'), at - 343) },
  }),
  writeCase({
    name: 'expire: outlives changes to what the row holds',
    given: Object.fromEntries(samples.map(([name, c]) => [name, expiring(c, at)])),
    when: (v) => {
      v.patch('value', 0, 'B');
      v.putField('map', 'h', '3');
      v.removeField('map', 'f');
      v.addMember('set', 'c');
      v.putScore('ranked', 'a', 9);
      v.pop('array', true);
      v.push('array', false, 'z');
      v.setState('stream', 'other');
      v.removeRecord('stream', 'a');
      v.removeRecord('stream', 'b');
    },
    then: {
      value: expiring(value('Bytes'), at),
      map: expiring(map('g', '2', '', 'empty', 'h', '3'), at),
      set: expiring(set('a', 'b', '7', 'c'), at),
      ranked: expiring(ranked('a', 9, 'b', -2.5, 'c', 1), at),
      array: expiring(array('y', '', 'x', 'z'), at),
      stream: expiring(stream('other'), at),
    },
  }),
];

const shapesGiven: RowsByKey = Object.fromEntries(samples);

const reads: ConformanceCase[] = [
  readCase({ name: 'find: nothing in an empty table', read: (v) => v.find('k'), answers: 0 }),
  readCase({
    name: 'find: neither a prefix nor an extension of a key',
    given: { key: value('v') },
    read: (v) => [v.find('ke'), v.find('keys'), v.find(''), v.find('Key'), v.find('key\0')],
    answers: [0, 0, 0, 0, 0],
  }),
  readCase({
    name: 'find: answers the same row until it is dropped',
    given: { k: value('v') },
    read: (v) => v.row('k') === v.row('k'),
    answers: true,
  }),
  readCase({
    name: 'key: of each row',
    given: { ...shapesGiven, '': value('v'), '\0\xff': value('v') },
    read: (v) => ['', '\0\xff', 'map', 'array'].map((key) => v.keyOf(v.row(key))),
    answers: ['', '\0\xff', 'map', 'array'],
  }),
  readCase({
    name: 'shape: of each row, and none of 0',
    given: shapesGiven,
    read: (v) => [v.table.shape(0), ...samples.map(([name]) => v.table.shape(v.row(name)))],
    answers: [0, Shape.value, Shape.map, Shape.set, Shape.ranked, Shape.array, Shape.stream],
  }),
  readCase({
    name: 'count: bytes of a value, elements of a container',
    given: { ...shapesGiven, empty: value('') },
    read: (v) => [...samples.map(([name]) => name), 'empty'].map((k) => v.table.count(v.row(k))),
    answers: [5, 3, 3, 3, 4, 2, 0],
  }),
  readCase({
    name: 'rowCount: of an empty table',
    read: (v) => [v.table.rowCount(), v.table.expiringRows],
    answers: [0, 0],
  }),
  readCase({
    name: 'anyRow: none in an empty table',
    read: (v) => [v.table.anyRow(0), v.table.anyRow(0.99)],
    answers: [0, 0],
  }),
  readCase({
    name: 'anyRow: the only row, whatever the number',
    given: { k: value('v') },
    read: (v) => [0, 0.3, 0.999999].map((random) => v.keyOf(v.table.anyRow(random))),
    answers: ['k', 'k', 'k'],
  }),
  readCase({
    name: 'anyRow: different rows of many',
    given: Object.fromEntries(range(50).map((i) => [`k${i}`, value('v')])),
    read: (v) => {
      const seen = new Set(range(500).map((i) => v.keyOf(v.table.anyRow(i / 500))));
      for (const key of seen) v.row(key);
      return seen.size > 5;
    },
    answers: true,
  }),
  readCase({
    name: 'footprint: something for a small row, about its size for a large one',
    given: {
      small: value('v'),
      value: value(noise(oneMegabyte)),
      array: array(...range(1000).map((i) => noise(100, i))),
      map: map(...range(1000).flatMap((i) => [`f${i}`, noise(100, i)])),
    },
    read: (v) => {
      const bytes = (key: string) => v.table.footprint(v.row(key));
      const near = (key: string, size: number) =>
        bytes(key) > size * 0.7 && bytes(key) < size * 4 ? 'near' : `${bytes(key)} for ${size}`;
      return [
        bytes('small') > 0 && bytes('small') < 1000,
        near('value', oneMegabyte),
        near('array', 100_000),
        near('map', 104_000),
      ];
    },
    answers: [true, 'near', 'near', 'near'],
  }),
];

export const valueCases: readonly ConformanceCase[] = [
  ...puts,
  ...patches,
  ...reserved,
  ...creates,
  ...drops,
  ...expiries,
  ...reads,
];
