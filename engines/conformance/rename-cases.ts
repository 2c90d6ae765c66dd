// Renames of rows of any shape.

import { noise, oneMegabyte, range, writeCase, type ConformanceCase } from './case.ts';
import { array, expiring, map, ranked, set, value } from './contents.ts';
import { largeSamples, samples } from './value-cases.ts';

const at = 1_900_000_000_000;

export const renameCases: readonly ConformanceCase[] = [
  ...samples.flatMap(([name, content]) => [
    writeCase({
      name: `rename: a ${name} to a new key`,
      given: { k: content },
      when: (v) => v.keyOf(v.rename('k', 'another')),
      answers: 'another',
      then: { another: content },
    }),
    writeCase({
      name: `rename: a ${name} onto itself`,
      given: { k: expiring(content, at) },
      when: (v) => v.keyOf(v.rename('k', 'k')),
      answers: 'k',
      then: { k: expiring(content, at) },
    }),
    ...samples.map(([over, old]) =>
      writeCase({
        name: `rename: a ${name} over a ${over}`,
        given: { k: expiring(content, at), l: old },
        when: (v) => v.rename('k', 'l'),
        then: { l: expiring(content, at) },
      }),
    ),
  ]),
  ...largeSamples.map(([name, content]) =>
    writeCase({
      name: `rename: a large ${name} over another, then changed under its new key`,
      given: { k: content, l: expiring(content, at) },
      when: (v) => {
        v.rename('k', 'l');
        v.fill('k', array('new'));
      },
      then: { l: content, k: array('new') },
    }),
  ),
  writeCase({
    name: 'rename: the expiry of what is replaced goes',
    given: { k: value('v'), l: expiring(value('w'), at) },
    when: (v) => v.rename('k', 'l'),
    then: { l: value('v') },
  }),
  writeCase({
    name: 'rename: two rows change places',
    given: { a: map('f', '1'), b: expiring(array('x'), at) },
    when: (v) => {
      v.rename('a', 'aside');
      v.rename('b', 'a');
      v.rename('aside', 'b');
    },
    then: { a: expiring(array('x'), at), b: map('f', '1') },
  }),
  writeCase({
    name: 'rename: the row returned is written to',
    given: { k: map('f', '1') },
    when: (v) => {
      const row = v.rename('k', 'l');
      v.putFieldOf(row, 'g', '2');
      return [v.table.count(row), v.find('k')];
    },
    answers: [2, 0],
    then: { l: map('f', '1', 'g', '2') },
  }),
  writeCase({
    name: 'rename: to and from an empty key, and to a key of 1 MB',
    given: { a: value('1'), '': set('m'), c: array('x') },
    when: (v) => {
      v.rename('', 'b');
      v.rename('a', '');
      v.rename('c', noise(oneMegabyte));
    },
    then: { b: set('m'), '': value('1'), [noise(oneMegabyte)]: array('x') },
  }),
  writeCase({
    name: 'rename: there and back again',
    given: { k: ranked('a', 1, 'b', 2) },
    when: (v) => {
      for (const i of range(20)) v.rename(i % 2 === 0 ? 'k' : 'l', i % 2 === 0 ? 'l' : 'k');
    },
    then: { k: ranked('a', 1, 'b', 2) },
  }),
];
