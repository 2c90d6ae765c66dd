// GEOSEARCH, GEOSEARCHSTORE, GEORADIUS, GEORADIUSBYMEMBER: the places within an area.

import type { Arguments } from '../../../arguments.ts';
import type { Reply } from '../../../reply.ts';
import { type Row, type Rows, Shape, type ScoreRange } from '../../../rows.ts';
import { shortWork, step, StepSize, type Steps, type StepTransform } from '../../../steps.ts';
import { ByteList } from '../support/byte-list.ts';
import { eachSized, sorted } from '../support/long-walks.ts';
import { storeScored, storeScoredInSteps } from '../support/store-scored.ts';
import { dropRow, typedRow } from '../support/typed-row.ts';
import {
  AreaBox,
  type CellRange,
  decodeScore,
  distanceWithin,
  type Position,
  rangesOf,
} from './cells.ts';
import { distanceText } from './format.ts';
import { answerPosition } from './places.ts';
import { type SearchForm, SearchOptions } from './search-options.ts';

/** Places that were found, in the order of the walk. */
class Found {
  readonly members: ByteList;
  readonly #distances: number[] = [];
  readonly #options: SearchOptions;
  readonly #place: Position = { longitude: 0, latitude: 0 };
  /** Once a member was seen. */
  #box: AreaBox | undefined;

  constructor(options: SearchOptions, members = new ByteList()) {
    this.#options = options;
    this.members = members;
  }

  get count(): number {
    return this.members.count;
  }

  /** Whether there are as many as any will do. */
  get isFull(): boolean {
    return this.#options.any && this.count >= this.#options.count;
  }

  /** Looks at a member; keeps it if it is in the area. */
  see(b: Buffer, s: number, n: number, score: number): void {
    const box = (this.#box ??= new AreaBox(this.#options.area));
    if (!box.mayHold(score)) return;
    const place = this.#place;
    decodeScore(score, place);
    const distance = distanceWithin(this.#options.area, place);
    if (distance < 0) return;
    this.#distances[this.count] = distance;
    this.members.add(b, s, n, score);
  }

  distance(i: number): number {
    return this.#distances[i]!;
  }

  /** Replies with one place. */
  answer(i: number, reply: Reply): void {
    const { withDistance, withHash, withPosition, unit } = this.#options;
    const more = Number(withDistance) + Number(withHash) + Number(withPosition);
    if (more > 0) reply.array(more + 1);
    const { members } = this;
    reply.bulk(members.buf, members.start(i), members.length(i));
    if (withDistance) reply.text(distanceText(this.distance(i) / unit));
    if (withHash) answerWhole(reply, members.score(i));
    if (!withPosition) return;
    decodeScore(members.score(i), this.#place);
    answerPosition(reply, this.#place);
  }

  /** The score that a place is stored with. */
  storedScore(i: number): number {
    const { storesDistance, unit } = this.#options;
    return storesDistance ? this.distance(i) / unit : this.members.score(i);
  }
}

/** Places on the very edge have scores beyond exact numbers. */
function answerWhole(reply: Reply, score: number): void {
  const whole = Math.trunc(score);
  if (Number.isSafeInteger(whole)) reply.integer(whole);
  else reply.bigInteger(BigInt(whole));
}

function scoreRange({ min, max }: CellRange): ScoreRange {
  return { min, minExclusive: false, max, maxExclusive: true };
}

/** Of commands that end where they began. */
const fewFound = new ByteList();

function search(
  form: SearchForm,
): (rows: Rows, args: Arguments, reply: Reply) => StepTransform | void {
  function* inSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
    const options = new SearchOptions();
    const row = options.read(rows, args, form);
    const found = new Found(options);
    if (row !== 0) yield* findInSteps(rows, args, form, options, found);
    const places = yield* orderInSteps(found, options);
    if (options.storeWord !== 0) yield* storeInSteps(rows, args, options, found, places, reply);
    else {
      reply.array(places.length);
      yield* eachSized(
        places.length,
        (i) => found.members.length(places[i]!) + 64,
        (i) => found.answer(places[i]!, reply),
      );
    }
  }

  return (rows, args, reply): StepTransform | void => {
    const options = new SearchOptions();
    const row = options.read(rows, args, form);
    fewFound.clear();
    const found = new Found(options, fewFound);
    if (row !== 0 && !find(rows, row, options, found)) return inSteps;
    const places = order(found, options);
    if (options.storeWord !== 0) {
      storeScored(rows, args, options.storeWord, listToStore(found, places));
      reply.integer(places.length);
    } else {
      reply.array(places.length);
      for (const i of places) found.answer(i, reply);
    }
  };
}

/** False when there is more to look at than is short. */
function find(rows: Rows, row: Row, options: SearchOptions, found: Found): boolean {
  let seen = 0;
  let bytes = 0;
  const see = (b: Buffer, s: number, n: number, score: number): boolean => {
    found.see(b, s, n, score);
    seen++;
    bytes += n;
    return found.isFull || seen > shortWork.elements || bytes > shortWork.bytes;
  };
  for (const range of rangesOf(options.area)) {
    rows.eachByScore(row, scoreRange(range), false, 0, shortWork.elements + 1, see);
    if (seen > shortWork.elements || bytes > shortWork.bytes) return false;
    if (found.isFull) return true;
  }
  return true;
}

function* findInSteps(
  rows: Rows,
  args: Arguments,
  form: SearchForm,
  options: SearchOptions,
  found: Found,
): Steps {
  const size = new StepSize();
  for (const range of rangesOf(options.area)) {
    const scores = scoreRange(range);
    for (let offset = 0, isOver = false; !isOver; offset += size.seen, size.end()) {
      const mark = found.members.mark();
      const from = offset;
      const isCut = yield* step(() => {
        found.members.rollback(mark);
        size.begin();
        let hasMore = false;
        const row = typedRow(rows, args, form.keyWord, Shape.ranked);
        rows.eachByScore(row, scores, false, from, size.elements, (b, s, n, score) => {
          found.see(b, s, n, score);
          hasMore = size.add(n);
          return hasMore || found.isFull;
        });
        return hasMore;
      });
      isOver = found.isFull || !isCut;
    }
    if (found.isFull) return;
  }
}

function compare(found: Found, direction: number): (x: number, y: number) => number {
  return (x, y) => {
    const a = found.distance(x);
    const b = found.distance(y);
    if (a > b) return direction;
    return a === b ? 0 : -direction;
  };
}

function order(found: Found, { order: direction, count }: SearchOptions): number[] {
  const places: number[] = [];
  for (let i = 0; i < found.count; i++) places.push(i);
  if (direction !== 0 && places.length > fewPlaces) places.sort(compare(found, direction));
  else if (direction !== 0) insertInOrder(found, direction, places);
  return count === 0 ? places : places.slice(0, count);
}

/** So many are in order sooner by insertion than by the sort of arrays, which copies them. */
const fewPlaces = 24;

/** Those at the same distance stay in the order of the walk. */
function insertInOrder(found: Found, direction: number, places: number[]): void {
  for (let i = 1; i < places.length; i++) {
    const place = places[i]!;
    const distance = found.distance(place) * direction;
    let to = i;
    while (to > 0 && found.distance(places[to - 1]!) * direction > distance) {
      places[to] = places[to - 1]!;
      to--;
    }
    places[to] = place;
  }
}

function* orderInSteps(
  found: Found,
  { order: direction, count }: SearchOptions,
): Generator<undefined, Uint32Array, undefined> {
  const most = count === 0 ? found.count : Math.min(count, found.count);
  if (direction !== 0)
    return (yield* sorted(found.count, compare(found, direction))).subarray(0, most);
  return Uint32Array.from({ length: most }, (_, i) => i);
}

function listToStore(found: Found, places: ArrayLike<number>): ByteList {
  const list = new ByteList();
  for (let k = 0; k < places.length; k++) addToStore(found, places[k]!, list);
  return list;
}

function addToStore(found: Found, i: number, list: ByteList): void {
  const { members } = found;
  list.add(members.buf, members.start(i), members.length(i), found.storedScore(i));
}

function* storeInSteps(
  rows: Rows,
  args: Arguments,
  options: SearchOptions,
  found: Found,
  places: Uint32Array,
  reply: Reply,
): Steps {
  const list = new ByteList();
  yield* eachSized(
    places.length,
    (i) => found.members.length(places[i]!),
    (i) => addToStore(found, places[i]!, list),
  );
  yield* step(() => dropRow(rows, args, options.storeWord));
  yield* storeScoredInSteps(rows, args, options.storeWord, list);
  reply.integer(places.length);
}

export const geosearch = search({ keyWord: 1, center: 'option', stores: 'no' });
export const geosearchstore = search({ keyWord: 2, center: 'option', stores: 'always' });
export const georadius = search({ keyWord: 1, center: 'position', stores: 'option' });
export const georadiusRo = search({ keyWord: 1, center: 'position', stores: 'no' });
export const georadiusbymember = search({ keyWord: 1, center: 'member', stores: 'option' });
export const georadiusbymemberRo = search({ keyWord: 1, center: 'member', stores: 'no' });
