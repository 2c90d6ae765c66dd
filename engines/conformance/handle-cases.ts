// Handles and views of rows, while other rows change.

import assert from 'node:assert/strict';
import { Slice } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import { noise, range, writeCase, type ConformanceCase } from './case.ts';
import { array, map, ranked, set, value } from './contents.ts';
import { text } from './verbs.ts';

const manyFields = range(600).flatMap((i) => [`f${i}`, `${i}`]);
const manyMembers = range(600).map((i) => `m${i}`);
const manyScores = range(600).flatMap((i) => [`m${i}`, i]);
const manyElements = range(600).map((i) => `e${i}`);

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

export const handleCases: readonly ConformanceCase[] = [...handles, ...aliases, ...writesFirst];
