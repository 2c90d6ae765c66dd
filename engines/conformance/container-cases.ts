// Maps, sets, ranked rows and arrays: each write at each place, on small rows and on large ones.

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
} from './case.ts';
import { array, map, ranked, set, value } from './contents.ts';
import { text, unlimited } from './verbs.ts';

const manyFields = range(600).flatMap((i) => [`f${i}`, `${i}`]);
const manyMembers = range(600).map((i) => `m${i}`);
const manyScores = range(600).flatMap((i) => [`m${i}`, i]);
const manyElements = range(600).map((i) => `e${i}`);

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

const scores: ConformanceCase[] = [
  writeCase({
    name: 'ranked: putScore says what is new, and moves what is not',
    given: { k: ranked('a', 1, 'b', 2, 'c', 3) },
    when: (v) => [
      v.putScore('k', 'd', 2.5),
      v.putScore('k', 'a', 9),
      v.putScore('k', 'c', -9),
      v.putScore('k', 'b', 2),
    ],
    answers: [true, false, false, false],
    then: { k: ranked('c', -9, 'b', 2, 'd', 2.5, 'a', 9) },
  }),
  writeCase({
    name: 'ranked: -0 is stored as 0',
    given: { k: ranked('a', 1) },
    when: (v) => {
      v.putScore('k', 'a', -0);
      v.putScore('k', 'b', -0);
      v.putScore('k', 'c', 0);
      return ['a', 'b', 'c'].map((member) => Object.is(v.score('k', member), 0));
    },
    answers: [true, true, true],
    then: { k: ranked('a', 0, 'b', 0, 'c', 0) },
  }),
  writeCase({
    name: 'ranked: scores at the edges of a double',
    when: (v) => {
      const edges = [Infinity, -Infinity, 5e-324, -5e-324, Number.MAX_VALUE, -Number.MAX_VALUE];
      [...edges, 0.1 + 0.2, 2 ** 53, 2 ** 53 + 2, 1e-10].forEach((s) => v.putScore('k', `${s}`, s));
    },
    then: {
      k: ranked(
        ...[Infinity, -Infinity, 5e-324, -5e-324, Number.MAX_VALUE, -Number.MAX_VALUE].flatMap(
          (s) => [`${s}`, s],
        ),
        ...[0.1 + 0.2, 2 ** 53, 2 ** 53 + 2, 1e-10].flatMap((s) => [`${s}`, s]),
      ),
    },
  }),
  writeCase({
    name: 'ranked: to infinity and back',
    given: { k: ranked('a', 1, 'b', 2) },
    when: (v) => {
      v.putScore('k', 'a', Infinity);
      v.putScore('k', 'b', -Infinity);
      v.putScore('k', 'a', 5);
    },
    then: { k: ranked('b', -Infinity, 'a', 5) },
  }),
  writeCase({
    name: 'ranked: ties are in the order of unsigned bytes, a prefix first',
    when: (v) =>
      ['', ...everyByte, 'ab', 'abc', 'a\0', '\xff\0'].forEach((m) => v.putScore('k', m, 1)),
    then: {
      k: ranked(...['', ...everyByte, 'ab', 'abc', 'a\0', '\xff\0'].flatMap((m) => [m, 1])),
    },
  }),
  writeCase({
    name: 'ranked: removal says what was there; the row goes with its last member',
    given: { k: ranked('a', 1, 'b', 1) },
    when: (v) => {
      const row = v.row('k');
      const removed = ['x', 'a', 'a', 'b'].map((member) => v.removeFieldOf(row, member));
      return [...removed, v.table.count(row), v.find('k')];
    },
    answers: [false, true, false, true, 0, 0],
    then: {},
  }),
  writeCase({
    name: 'ranked: an empty member and one of 1 MB',
    when: (v) => [v.putScore('k', '', 1), v.putScore('k', noise(oneMegabyte), 1)],
    answers: [true, true],
    then: { k: ranked('', 1, noise(oneMegabyte), 1) },
  }),
  writeCase({
    name: 'ranked: changes in a large one',
    given: { k: ranked(...manyScores) },
    when: (v) => [
      v.putScore('k', 'm0', 599.5),
      v.putScore('k', 'm599', -1),
      v.putScore('k', 'new', 300),
      v.removeField('k', 'm301'),
      v.rank('k', 'm0'),
      v.rank('k', 'm599'),
      v.rank('k', 'new'),
      v.rank('k', 'm302'),
    ],
    answers: [false, false, true, true, 599, 0, 301, 302],
    then: {
      k: ranked(
        ...manyScores.slice(2, 602),
        ...manyScores.slice(604, -2),
        ...['m0', 599.5, 'm599', -1, 'new', 300],
      ),
    },
  }),
  writeCase({
    name: 'ranked: every score of a large one changes, in reverse',
    given: { k: ranked(...manyScores) },
    when: (v) => {
      const row = v.row('k');
      for (const i of range(600)) assert.equal(v.putScoreOf(row, `m${i}`, -i), false);
    },
    then: { k: ranked(...manyScores.map((item) => (typeof item === 'number' ? 0 - item : item))) },
  }),
  readCase({
    name: 'ranked: score, rank and membership, also of what is missing',
    given: { k: ranked('a', 1, 'b', 1, 'c', -2) },
    read: (v) => [
      ...['a', 'b', 'c'].map((member) => [v.score('k', member), v.rank('k', member)]),
      Number.isNaN(v.score('k', 'd')),
      v.rank('k', 'd'),
      v.rank('k', ''),
      v.hasField('k', 'a'),
      v.hasField('k', 'd'),
    ],
    answers: [[1, 1], [1, 2], [-2, 0], true, -1, -1, true, false],
  }),
];

const arrays: ConformanceCase[] = [
  writeCase({
    name: 'array: pushes at both ends',
    when: (v) => {
      for (const i of range(5)) {
        v.push('k', true, `head ${i}`);
        v.push('k', false, `tail ${i}`);
      }
    },
    then: {
      k: array(...range(5).map((i) => `head ${4 - i}`), ...range(5).map((i) => `tail ${i}`)),
    },
  }),
  writeCase({
    name: 'array: pops at both ends',
    given: { k: array('a', 'b', 'c', 'd') },
    when: (v) => {
      v.pop('k', true);
      v.pop('k', false);
      return v.elements('k', 0, unlimited);
    },
    answers: ['b', 'c'],
    then: { k: array('b', 'c') },
  }),
  ...[true, false].map((atHead) =>
    writeCase({
      name: `array: goes with the last pop at the ${atHead ? 'head' : 'tail'}; its count is then 0`,
      given: { k: array('a', 'b') },
      when: (v) => {
        const row = v.row('k');
        v.table.pop(row, atHead);
        v.table.pop(row, atHead);
        return [v.table.count(row), v.find('k')];
      },
      answers: [0, 0],
      then: {},
    }),
  ),
  writeCase({
    name: 'array: an element of each byte, an empty one and one of 1 MB',
    when: (v) => ['', ...everyByte, noise(oneMegabyte)].forEach((e) => v.push('k', false, e)),
    then: { k: array('', ...everyByte, noise(oneMegabyte)) },
  }),
  writeCase({
    name: 'array: elements of 0 to 300 bytes, pushed at the head',
    when: (v) => range(301).forEach((n) => v.push('k', true, noise(n, n))),
    then: { k: array(...range(301).map((n) => noise(300 - n, 300 - n))) },
  }),
  ...(
    [
      ['small', manyElements.slice(0, 5)],
      ['large', manyElements],
    ] as const
  ).flatMap(([name, elements]) => {
    const last = elements.length - 1;
    const middle = elements.length >> 1;
    return [
      ...[0, middle, last].map((index) =>
        writeCase({
          name: `array: the element at ${index} of a ${name} one is set, also longer and empty`,
          given: { k: array(...elements) },
          when: (v) => {
            const set = ['x', noise(3000), '', 'set'].map((element) => {
              v.setElement('k', index, element);
              return v.element('k', index) === element;
            });
            return [...set, v.table.count(v.row('k'))];
          },
          answers: [true, true, true, true, elements.length],
          then: { k: array(...elements.with(index, 'set')) },
        }),
      ),
      ...[0, 1, middle, last, last + 1].map((index) =>
        writeCase({
          name: `array: an element is put before the one at ${index} of a ${name} one`,
          given: { k: array(...elements) },
          when: (v) => {
            v.insertElement('k', index, 'new');
            v.insertElement('k', index, noise(500));
          },
          then: { k: array(...elements.toSpliced(index, 0, noise(500), 'new')) },
        }),
      ),
      ...(
        [
          [0, 1],
          [0, 3],
          [middle, 1],
          [middle - 1, 3],
          [last, 1],
          [last - 2, 3],
          [1, last],
          [0, last],
        ] as const
      ).map(([index, count]) =>
        writeCase({
          name: `array: ${count} elements from ${index} of a ${name} one are removed`,
          given: { k: array(...elements) },
          when: (v) => {
            v.removeElements('k', index, count);
            return v.element('k', 0);
          },
          answers: elements.toSpliced(index, count)[0],
          then: { k: array(...elements.toSpliced(index, count)) },
        }),
      ),
      writeCase({
        name: `array: a ${name} one goes when all its elements are removed`,
        given: { k: array(...elements) },
        when: (v) => {
          const row = v.row('k');
          v.table.removeElements(row, 0, elements.length);
          return [v.table.count(row), v.find('k')];
        },
        answers: [0, 0],
        then: {},
      }),
      writeCase({
        name: `array: a ${name} one goes round like a queue`,
        given: { k: array(...elements) },
        when: (v) => {
          for (const i of range(300)) {
            const first = v.element('k', 0)!;
            v.pop('k', true);
            v.push('k', false, i === 299 ? 'last' : first);
          }
        },
        then: {
          k: array(
            ...range(elements.length - 1).map((i) => elements[(300 + i) % elements.length]!),
            'last',
          ),
        },
      }),
      readCase({
        name: `array: elements of a ${name} one by index`,
        given: { k: array(...elements) },
        read: (v) => [-1, 0, 1, middle, last, last + 1, 1e9].map((i) => v.element('k', i)),
        answers: [
          undefined,
          elements[0],
          elements[1],
          elements[middle],
          elements[last],
          undefined,
          undefined,
        ],
      }),
      readCase({
        name: `array: walks of a ${name} one, from each side, some and all`,
        given: { k: array(...elements) },
        read: (v) => [
          v.elements('k', 0, unlimited),
          v.elements('k', last, unlimited, true),
          v.elements('k', middle, 2),
          v.elements('k', middle, 2, true),
          v.elements('k', last, 5),
          v.elements('k', 0, 5, true),
          v.elements('k', 1, 0),
        ],
        answers: [
          elements,
          elements.toReversed(),
          elements.slice(middle, middle + 2),
          [elements[middle], elements[middle - 1]],
          [elements[last]],
          [elements[0]],
          [],
        ],
      }),
      readCase({
        name: `array: a walk of a ${name} one stops when the visitor says so`,
        given: { k: array(...elements) },
        read: (v) =>
          [false, true].map((reverse) => {
            let seen = 0;
            const stop = () => ++seen === 3;
            v.table.eachElement(v.row('k'), reverse ? last : 0, unlimited, reverse, stop);
            return seen;
          }),
        answers: [3, 3],
      }),
    ];
  }),
];

const handles: ConformanceCase[] = [
  ...([Shape.map, Shape.set, Shape.ranked, Shape.array] as const).map((shape) =>
    writeCase({
      name: `handle: a row of shape ${shape} grows through every form under one handle`,
      when: (v) => {
        const row = v.create('k', shape);
        for (const i of range(700)) {
          if (shape === Shape.ranked) v.putScoreOf(row, `m${i}`, i);
          else if (shape === Shape.array) v.pushOf(row, false, `m${i}`);
          else v.putFieldOf(row, `m${i}`, shape === Shape.map ? `${i}` : '');
          v.put(`filler ${i % 40}`, noise(i));
        }
        for (const i of range(40)) v.drop(`filler ${i}`);
        return v.table.count(row);
      },
      answers: 700,
      then: {
        k: {
          [Shape.map]: map(...range(700).flatMap((i) => [`m${i}`, `${i}`])),
          [Shape.set]: set(...range(700).map((i) => `m${i}`)),
          [Shape.ranked]: ranked(...range(700).flatMap((i) => [`m${i}`, i])),
          [Shape.array]: array(...range(700).map((i) => `m${i}`)),
        }[shape],
      },
    }),
  ),
  writeCase({
    name: 'handle: a source is read while another row is filled from it',
    given: { from: array(...manyElements) },
    when: (v) => {
      const from = v.row('from');
      const to = v.create('to', Shape.set);
      const out = new Slice();
      for (const i of range(600)) {
        assert.ok(v.table.element(from, i, out));
        v.putFieldOf(to, text(out), '');
      }
      v.table.drop(from);
      return v.table.count(to);
    },
    answers: 600,
    then: { to: set(...manyElements) },
  }),
];

/** Writes whose bytes lie where a read of the same table has pointed. */
const aliases: ConformanceCase[] = [5, 60, 3000].map((size) =>
  writeCase({
    name: `alias: ${size} bytes that a read points at become a field, a member and an element`,
    given: { from: array(noise(size)), map: map('f', '1'), ranked: ranked('a', 1) },
    when: (v) => {
      const out = new Slice();
      const read = () => v.table.element(v.row('from'), 0, out);
      read();
      v.table.putField(v.row('map'), out.b, out.s, out.n, out.b, out.s, out.n);
      read();
      v.table.putScore(v.row('ranked'), out.b, out.s, out.n, 2);
      const list = v.create('list', Shape.array);
      read();
      v.table.push(list, false, out.b, out.s, out.n);
      read();
      v.table.push(v.row('from'), true, out.b, out.s, out.n);
    },
    then: {
      from: array(noise(size), noise(size)),
      map: map('f', '1', noise(size), noise(size)),
      ranked: ranked('a', 1, noise(size), 2),
      list: array(noise(size)),
    },
  }),
);

/**
 * Writes before the first read of a row's elements: the step must give the same result when it runs
 * again.
 */
const writesFirst: ConformanceCase[] = [
  writeCase({
    name: 'write first: an element, a field, a member, then reads of others',
    given: { a: array('x', 'y'), m: map('f', '1'), s: set('p'), r: ranked('q', 1) },
    when: (v) => {
      v.push('a', false, 'z');
      v.putField('m', 'g', '2');
      v.addMember('s', 'o');
      v.putScore('r', 'n', 2);
      return [v.element('a', 0), v.field('m', 'f'), v.hasField('s', 'p'), v.score('r', 'q')];
    },
    answers: ['x', '1', true, 1],
    then: {
      a: array('x', 'y', 'z'),
      m: map('f', '1', 'g', '2'),
      s: set('o', 'p'),
      r: ranked('q', 1, 'n', 2),
    },
  }),
  ...(['a', 'm', 's', 'r'] as const).map((key) => {
    const given = { a: array(...manyElements), m: map(...manyFields) };
    const rows = { ...given, s: set(...manyMembers), r: ranked(...manyScores) };
    return writeCase({
      name: `write first: a rename and an expiry of ${key}, then a read of all of it`,
      given: { [key]: rows[key], other: array('x') },
      when: (v) => {
        v.expire(key, 1_900_000_000_000);
        v.rename('other', 'another');
        v.rename(key, 'other');
        return v.content('other').items.length;
      },
      answers: rows[key].items.length,
      then: { other: { ...rows[key], expireAt: 1_900_000_000_000 }, another: array('x') },
    });
  }),
  writeCase({
    name: 'write first: a clear, then a scan and a look for any row and for what is due',
    given: { a: array('x'), b: value('v') },
    when: (v) => {
      v.table.clear();
      let seen = v.table.scan(0, 10, () => assert.fail('a row after the clear'));
      seen += v.table.anyRow(0.5);
      v.table.expired(Number.MAX_SAFE_INTEGER, 10, () => assert.fail('a row after the clear'));
      v.put('c', 'v');
      return [seen, v.keyOf(v.table.anyRow(0.5))];
    },
    answers: [0, 'c'],
    then: { c: value('v') },
  }),
];

export const containerCases: readonly ConformanceCase[] = [
  ...maps,
  ...sets,
  ...scores,
  ...arrays,
  ...handles,
  ...aliases,
  ...writesFirst,
];
