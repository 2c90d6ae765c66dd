// Maps and sets: each write at each place, on small rows and on large ones.

import assert from 'node:assert/strict';
import { Slice } from '../../universal-row/bytes.ts';
import {
  everyByte,
  noise,
  oneMegabyte,
  range,
  readCase,
  writeCase,
  type ConformanceCase,
} from './case.ts';
import { map, set, value } from './contents.ts';
import { text } from './verbs.ts';

const manyFields = range(600).flatMap((i) => [`f${i}`, `${i}`]);
const manyMembers = range(600).map((i) => `m${i}`);

const maps: ConformanceCase[] = [
  writeCase({
    name: 'map: putField says what is new',
    given: { k: map('f', '1') },
    when: (v) => [v.putField('k', 'g', '2'), v.putField('k', 'f', '3'), v.putField('k', 'f', '3')],
    answers: [true, false, false],
    then: { k: map('f', '3', 'g', '2') },
  }),
  writeCase({
    name: 'map: a field is set shorter, longer, empty',
    given: { k: map('a', 'value', 'b', 'value', 'c', 'value', 'd', 'value') },
    when: (v) => {
      v.putField('k', 'a', 'v');
      v.putField('k', 'b', 'a value that is longer');
      v.putField('k', 'c', '');
      v.putField('k', 'd', noise(5000));
    },
    then: { k: map('a', 'v', 'b', 'a value that is longer', 'c', '', 'd', noise(5000)) },
  }),
  writeCase({
    name: 'map: removeField says what was there',
    given: { k: map('f', '1', 'g', '2', 'h', '3') },
    when: (v) => [v.removeField('k', 'g'), v.removeField('k', 'g'), v.removeField('k', '')],
    answers: [true, false, false],
    then: { k: map('f', '1', 'h', '3') },
  }),
  writeCase({
    name: 'map: goes with its last field; its count is then 0',
    given: { k: map('f', '1', 'g', '2'), other: value('v') },
    when: (v) => {
      const row = v.row('k');
      v.removeFieldOf(row, 'f');
      v.removeFieldOf(row, 'g');
      return [v.table.count(row), v.find('k'), v.table.rowCount()];
    },
    answers: [0, 0, 1],
    then: { other: value('v') },
  }),
  writeCase({
    name: 'map: comes again in the step in which it went',
    given: { k: map('f', '1') },
    when: (v) => {
      v.removeField('k', 'f');
      v.putField('k', 'g', '2');
    },
    then: { k: map('g', '2') },
  }),
  writeCase({
    name: 'map: an empty field, and one of each byte',
    when: (v) => ['', ...everyByte].forEach((field) => v.putField('k', field, field)),
    then: { k: map(...['', ...everyByte].flatMap((field) => [field, field])) },
  }),
  writeCase({
    name: 'map: a field and a value of 1 MB',
    given: { k: map('a', 'b') },
    when: (v) => [
      v.putField('k', noise(oneMegabyte), 'v'),
      v.putField('k', 'f', noise(oneMegabyte, 2)),
    ],
    answers: [true, true],
    then: { k: map('a', 'b', noise(oneMegabyte), 'v', 'f', noise(oneMegabyte, 2)) },
  }),
  writeCase({
    name: 'map: a field of 1 MB is set again and removed',
    given: { k: map('a', 'b', noise(oneMegabyte), 'v') },
    when: (v) => [v.putField('k', noise(oneMegabyte), 'w'), v.removeField('k', noise(oneMegabyte))],
    answers: [false, true],
    then: { k: map('a', 'b') },
  }),
  writeCase({
    name: 'map: fields and values of 0 to 300 bytes',
    when: (v) => range(301).forEach((n) => v.putField('k', 'f'.repeat(n), noise(n, n))),
    then: { k: map(...range(301).flatMap((n) => ['f'.repeat(n), noise(n, n)])) },
  }),
  writeCase({
    name: 'map: changes in a large one',
    given: { k: map(...manyFields) },
    when: (v) => [
      v.putField('k', 'f300', 'changed'),
      v.removeField('k', 'f0'),
      v.removeField('k', 'f599'),
      v.removeField('k', 'f600'),
      v.putField('k', 'f600', ''),
    ],
    answers: [false, true, true, false, true],
    then: {
      k: map(
        ...manyFields.slice(2, -2).map((item, i) => (i === 2 * 299 + 1 ? 'changed' : item)),
        'f600',
        '',
      ),
    },
  }),
  writeCase({
    name: 'map: a large one is emptied in one step',
    given: { k: map(...manyFields) },
    when: (v) => {
      const row = v.row('k');
      for (const i of range(600)) assert.ok(v.removeFieldOf(row, `f${i}`));
      return [v.table.count(row), v.find('k')];
    },
    answers: [0, 0],
    then: {},
  }),
  readCase({
    name: 'map: field with and without a value',
    given: { k: map('f', '1', 'empty', '', '', 'of empty') },
    read: (v) => [
      v.field('k', 'f'),
      v.field('k', 'empty'),
      v.field('k', ''),
      v.field('k', 'g'),
      v.hasField('k', 'f'),
      v.hasField('k', 'ff'),
    ],
    answers: ['1', '', 'of empty', undefined, true, false],
  }),
  readCase({
    name: 'map: a field of which another is a prefix',
    given: { k: map('ab', '1', 'abc', '2', 'a', '3') },
    read: (v) => ['a', 'ab', 'abc', 'abcd'].map((field) => v.field('k', field)),
    answers: ['3', '1', '2', undefined],
  }),
  ...[
    ['small', 5],
    ['large', 600],
  ].map(([name, size]) =>
    readCase({
      name: `map: fieldAt and eachField see each field of a ${name} one once`,
      given: { k: map(...manyFields.slice(0, Number(size) * 2)) },
      read: (v) => {
        const row = v.row('k');
        const field = new Slice();
        const bytes = new Slice();
        const at = range(Number(size)).map((i) => {
          v.table.fieldAt(row, i, field, bytes);
          return `${text(field)}=${text(bytes)}`;
        });
        const each = v.fields(row);
        return [new Set(at).size, at.every((pair) => /^f(\d+)=\1$/.test(pair)), each.length];
      },
      answers: [size, true, Number(size) * 2],
    }),
  ),
  ...[
    ['small', 5],
    ['large', 600],
  ].map(([name, size]) =>
    readCase({
      name: `map: a walk of a ${name} one stops when the visitor says so`,
      given: { k: map(...manyFields.slice(0, Number(size) * 2)) },
      read: (v) => {
        let seen = 0;
        v.table.eachField(v.row('k'), () => ++seen === 3);
        return seen;
      },
      answers: 3,
    }),
  ),
];

// Strings that are or resemble integers: an engine may store integers in a form of their own.
const integers = [
  '0',
  '1',
  '-1',
  '127',
  '128',
  '-128',
  '32767',
  '32768',
  '65536',
  '2147483647',
  '2147483648',
  '-2147483649',
  '9007199254740993',
  '9223372036854775807',
  '-9223372036854775808',
];
const nearlyIntegers = [
  '-0',
  '007',
  '+1',
  ' 1',
  '1 ',
  '1.0',
  '9223372036854775808',
  '',
  '-',
  '0x1',
];

const sets: ConformanceCase[] = [
  writeCase({
    name: 'set: addMember says what is new',
    given: { k: set('a') },
    when: (v) => [v.addMember('k', 'b'), v.addMember('k', 'a')],
    answers: [true, false],
    then: { k: set('a', 'b') },
  }),
  writeCase({
    name: 'set: removal says what was there; the row goes with its last member',
    given: { k: set('a', 'b') },
    when: (v) => {
      const row = v.row('k');
      const removed = ['x', 'a', 'a', 'b'].map((member) => v.removeFieldOf(row, member));
      return [...removed, v.table.count(row), v.find('k')];
    },
    answers: [false, true, false, true, 0, 0],
    then: {},
  }),
  writeCase({
    name: 'set: integers of every width',
    when: (v) => integers.map((member) => v.addMember('k', member)),
    then: { k: set(...integers) },
  }),
  writeCase({
    name: 'set: what is nearly an integer stays as it is',
    given: { k: set(...integers) },
    when: (v) => nearlyIntegers.map((member) => v.addMember('k', member)),
    answers: nearlyIntegers.map(() => true),
    then: { k: set(...integers, ...nearlyIntegers) },
  }),
  writeCase({
    name: 'set: a text among many integers',
    given: { k: set(...range(300).map(String)) },
    when: (v) => [v.addMember('k', 'text'), v.addMember('k', '299'), v.removeField('k', '150')],
    answers: [true, false, true],
    then: { k: set(...range(300).map(String).toSpliced(150, 1), 'text') },
  }),
  writeCase({
    name: 'set: a member of each byte, an empty one and one of 1 MB',
    when: (v) => ['', ...everyByte, noise(oneMegabyte)].forEach((m) => v.addMember('k', m)),
    then: { k: set('', ...everyByte, noise(oneMegabyte)) },
  }),
  writeCase({
    name: 'set: changes in a large one',
    given: { k: set(...manyMembers) },
    when: (v) => [
      v.addMember('k', 'm5'),
      v.addMember('k', 'new'),
      v.removeField('k', 'm0'),
      v.removeField('k', 'none'),
    ],
    answers: [false, true, true, false],
    then: { k: set(...manyMembers.slice(1), 'new') },
  }),
  readCase({
    name: 'set: membership',
    given: { k: set('a', '5', ''), large: set(...manyMembers) },
    read: (v) => [
      ...['a', '5', '', 'b', '6', 'aa'].map((member) => v.hasField('k', member)),
      ...['m0', 'm599', 'm600', ''].map((member) => v.hasField('large', member)),
    ],
    answers: [true, true, true, false, false, false, true, true, false, false],
  }),
  ...[3, 300].map((size) =>
    readCase({
      name: `set: fieldAt sees each of ${size} members once`,
      given: { k: set(...manyMembers.slice(0, size)), n: set(...range(size).map(String)) },
      read: (v) => {
        const field = new Slice();
        const none = new Slice();
        return ['k', 'n'].map((key) => {
          const row = v.row(key);
          const members = range(size).map((i) => {
            v.table.fieldAt(row, i, field, none);
            return `${text(field)}${text(none)}`;
          });
          return new Set(members).size;
        });
      },
      answers: [size, size],
    }),
  ),
];

export const fieldCases: readonly ConformanceCase[] = [...maps, ...sets];
