// GEOADD, GEOPOS, GEODIST and GEOHASH: places are the members of a sorted set.

import type { Arguments } from '../../../arguments.ts';
import { CommandError, syntaxError } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import { type Row, type Rows, Shape } from '../../../rows.ts';
import { shortWork, type Steps, type StepTransform } from '../../../steps.ts';
import { answerEachWord, eachWord, Tally, together } from '../support/long-walks.ts';
import { createRow, typedRow } from '../support/typed-row.ts';
import {
  decodeScore,
  distanceBetween,
  geohashText,
  maxLatitude,
  maxLongitude,
  type Position,
  scoreOf,
} from './cells.ts';
import { coordinateText, distanceText, sixDigits } from './format.ts';

const unitError = new CommandError('ERR unsupported unit provided. please use M, KM, FT, MI');

const place: Position = { longitude: 0, latitude: 0 };
const other: Position = { longitude: 0, latitude: 0 };

/** Meters of the unit in a word. */
export function unitAt(args: Arguments, word: number): number {
  if (args.is(word, 'M')) return 1;
  if (args.is(word, 'KM')) return 1000;
  if (args.is(word, 'FT')) return 0.3048;
  if (args.is(word, 'MI')) return 1609.34;
  throw unitError;
}

/** Sets `position` to the longitude in a word and the latitude in the next. */
export function positionAt(args: Arguments, word: number, position: Position): void {
  const longitude = args.float(word);
  const latitude = args.float(word + 1);
  if (Math.abs(longitude) > maxLongitude || Math.abs(latitude) > maxLatitude) {
    const pair = `${sixDigits(longitude)},${sixDigits(latitude)}`;
    throw new CommandError(`ERR invalid longitude,latitude pair ${pair}`);
  }
  position.longitude = longitude;
  position.latitude = latitude;
}

export function answerPosition(reply: Reply, { longitude, latitude }: Position): void {
  reply.array(2);
  reply.double(longitude, coordinateText(longitude));
  reply.double(latitude, coordinateText(latitude));
}

interface AddOptions {
  nx: boolean;
  xx: boolean;
  ch: boolean;
  /** The word of the first longitude. */
  first: number;
}

function addOptions(args: Arguments): AddOptions {
  const options: AddOptions = { nx: false, xx: false, ch: false, first: 2 };
  for (; options.first < args.count; options.first++) {
    if (args.is(options.first, 'NX')) options.nx = true;
    else if (args.is(options.first, 'XX')) options.xx = true;
    else if (args.is(options.first, 'CH')) options.ch = true;
    else break;
  }
  const words = args.count - options.first;
  if (words === 0 || words % 3 !== 0 || (options.nx && options.xx)) throw syntaxError;
  return options;
}

function scoreAt(args: Arguments, word: number): number {
  positionAt(args, word, place);
  return scoreOf(place);
}

/** Puts a place; 0 when nothing changed, 1 when it moved, 2 when it is new. */
function put(
  rows: Rows,
  row: Row,
  args: Arguments,
  word: number,
  score: number,
  options: AddOptions,
): number {
  const { buf, starts, lens } = args;
  const old = rows.score(row, buf, starts[word]!, lens[word]!);
  if (Number.isNaN(old) ? options.xx : options.nx || old === score) return 0;
  return rows.putScore(row, buf, starts[word]!, lens[word]!, score) ? 2 : 1;
}

export function geoadd(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > shortWork.elements) return geoaddInSteps;
  const options = addOptions(args);
  const { first } = options;
  const scores = new Float64Array((args.count - first) / 3);
  for (let i = 0; i < scores.length; i++) scores[i] = scoreAt(args, first + 3 * i);
  const found = typedRow(rows, args, 1, Shape.ranked);
  let added = 0;
  let moved = 0;
  if (found !== 0 || !options.xx) {
    const row = found !== 0 ? found : createRow(rows, args, 1, Shape.ranked);
    for (let i = 0; i < scores.length; i++) {
      const change = put(rows, row, args, first + 3 * i + 2, scores[i]!, options);
      if (change === 2) added++;
      else if (change === 1) moved++;
    }
  }
  reply.integer(options.ch ? added + moved : added);
}

function* geoaddInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const options = addOptions(args);
  const { first } = options;
  const { count } = args;
  const scores = new Float64Array((count - first) / 3);
  yield* eachWord(args, first, count, 3, undefined, nothing, (word) => {
    scores[(word - first) / 3] = scoreAt(args, word);
  });
  const added = new Tally();
  const moved = new Tally();
  let row: Row = 0;
  const find = (): void => {
    row = typedRow(rows, args, 1, Shape.ranked);
    if (row === 0 && !options.xx) row = createRow(rows, args, 1, Shape.ranked);
  };
  yield* eachWord(args, first, count, 3, together(added, moved), find, (word) => {
    if (row === 0) return true;
    const change = put(rows, row, args, word + 2, scores[(word - first) / 3]!, options);
    if (change === 2) added.value++;
    else if (change === 1) moved.value++;
    return false;
  });
  reply.integer(options.ch ? added.value + moved.value : added.value);
}

function nothing(): void {
  // A step that begins again has nothing to find.
}

/** Sets `position` to the position of the member in an argument; false if it is absent. */
export function findMember(
  rows: Rows,
  row: Row,
  args: Arguments,
  word: number,
  position: Position,
): boolean {
  if (row === 0) return false;
  const score = rows.score(row, args.buf, args.starts[word]!, args.lens[word]!);
  if (Number.isNaN(score)) return false;
  decodeScore(score, position);
  return true;
}

/** A command that answers something about each of the members named. */
function aboutEach(
  answer: (rows: Rows, row: Row, args: Arguments, word: number, reply: Reply) => void,
): (rows: Rows, args: Arguments, reply: Reply) => StepTransform | void {
  function inSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
    return answerEachWord(rows, args, reply, Shape.ranked, (row, word) => {
      answer(rows, row, args, word, reply);
    });
  }
  return (rows, args, reply): StepTransform | void => {
    if (args.count > shortWork.elements) return inSteps;
    const row = typedRow(rows, args, 1, Shape.ranked);
    reply.array(args.count - 2);
    for (let word = 2; word < args.count; word++) answer(rows, row, args, word, reply);
  };
}

export const geopos = aboutEach((rows, row, args, word, reply) => {
  if (findMember(rows, row, args, word, place)) answerPosition(reply, place);
  else reply.nilArray();
});

export const geohash = aboutEach((rows, row, args, word, reply) => {
  if (findMember(rows, row, args, word, place)) reply.text(geohashText(place));
  else reply.nil();
});

export function geodist(rows: Rows, args: Arguments, reply: Reply): void {
  if (args.count > 5) throw syntaxError;
  const unit = args.count === 5 ? unitAt(args, 4) : 1;
  const row = typedRow(rows, args, 1, Shape.ranked);
  if (!findMember(rows, row, args, 2, place) || !findMember(rows, row, args, 3, other)) {
    reply.nil();
    return;
  }
  const meters = distanceBetween(place.longitude, place.latitude, other.longitude, other.latitude);
  reply.text(distanceText(meters / unit));
}
