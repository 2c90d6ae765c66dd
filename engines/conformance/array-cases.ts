// Arrays: each write at each place, on small rows and on large ones.

import {
  everyByte,
  noise,
  oneMegabyte,
  range,
  readCase,
  writeCase,
  type ConformanceCase,
} from './case.ts';
import { array } from './contents.ts';
import { unlimited } from './verbs.ts';

const manyElements = range(600).map((i) => `e${i}`);

export const arrayCases: readonly ConformanceCase[] = [
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
