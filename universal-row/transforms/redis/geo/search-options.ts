// Options of GEOSEARCH, GEORADIUS and related commands, parsed from the arguments.

import type { Arguments } from '../../../arguments.ts';
import { CommandError, syntaxError } from '../../../errors.ts';
import { type Row, type Rows, Shape } from '../../../rows.ts';
import { typedRow } from '../support/typed-row.ts';
import type { CircleOrBox } from './cells.ts';
import { findMember, positionAt, unitAt } from './places.ts';

const noMember = new CommandError('ERR could not decode requested zset member');
const radiusError = new CommandError('ERR need numeric radius');
const widthError = new CommandError('ERR need numeric width');
const heightError = new CommandError('ERR need numeric height');
const negativeRadius = new CommandError('ERR radius cannot be negative');
const negativeBox = new CommandError('ERR height or width cannot be negative');
const countError = new CommandError('ERR COUNT must be > 0');
const anyError = new CommandError('ERR the ANY argument requires COUNT argument');

/** One of the commands. */
export interface SearchForm {
  /** The word of the key that is searched. */
  keyWord: number;
  /** Center of GEORADIUS and GEORADIUSBYMEMBER; GEOSEARCH gives it as an option. */
  center: 'position' | 'member' | 'option';
  /** Options STORE and STOREDIST name the key to store to; GEOSEARCHSTORE stores to word 1. */
  stores: 'no' | 'option' | 'always';
}

export class SearchOptions {
  readonly area: CircleOrBox = {
    center: { longitude: 0, latitude: 0 },
    radius: undefined,
    width: 0,
    height: 0,
  };
  /** Meters of the unit that distances are told in. */
  unit = 1;
  withDistance = false;
  withHash = false;
  withPosition = false;
  /** 0 for none. */
  order: -1 | 0 | 1 = 0;
  /** Most places to answer; 0 for all. */
  count = 0;
  /** Any so many, not the nearest. */
  any = false;
  /** The word of the key to store to; 0 for none. */
  storeWord = 0;
  storesDistance = false;
  #hasMember = false;
  #hasPosition = false;
  #hasRadius = false;
  #hasBox = false;

  /** Reads the words; the row that is searched, or 0. */
  read(rows: Rows, args: Arguments, form: SearchForm): Row {
    const row = typedRow(rows, args, form.keyWord, Shape.ranked);
    let word = form.keyWord + 1;
    if (form.stores === 'always') this.storeWord = 1;
    if (form.center === 'position') {
      positionAt(args, word, this.area.center);
      this.#radius(args, word + 2);
      word += 4;
    } else if (form.center === 'member') {
      if (row !== 0) {
        if (!findMember(rows, row, args, word, this.area.center)) throw noMember;
        this.#radius(args, word + 1);
      }
      word += 3;
    }
    while (word < args.count) word = this.#option(rows, row, args, word, form);
    this.#check(args, form);
    return row;
  }

  #option(rows: Rows, row: Row, args: Arguments, word: number, form: SearchForm): number {
    const left = args.count - word - 1;
    if (args.is(word, 'WITHDIST')) this.withDistance = true;
    else if (args.is(word, 'WITHHASH')) this.withHash = true;
    else if (args.is(word, 'WITHCOORD')) this.withPosition = true;
    else if (args.is(word, 'ANY')) this.any = true;
    else if (args.is(word, 'ASC')) this.order = 1;
    else if (args.is(word, 'DESC')) this.order = -1;
    else if (args.is(word, 'COUNT') && left >= 1) {
      this.count = args.integer(word + 1);
      if (this.count <= 0) throw countError;
      return word + 2;
    } else if (form.center === 'option') return this.#searchOption(rows, row, args, word, form);
    else if (form.stores === 'option' && left >= 1 && args.is(word, 'STORE')) {
      this.storeWord = word + 1;
      this.storesDistance = false;
      return word + 2;
    } else if (form.stores === 'option' && left >= 1 && args.is(word, 'STOREDIST')) {
      this.storeWord = word + 1;
      this.storesDistance = true;
      return word + 2;
    } else throw syntaxError;
    return word + 1;
  }

  /** Options of GEOSEARCH and GEOSEARCHSTORE. */
  #searchOption(rows: Rows, row: Row, args: Arguments, word: number, form: SearchForm): number {
    const left = args.count - word - 1;
    if (form.stores === 'always' && args.is(word, 'STOREDIST')) {
      this.storesDistance = true;
      return word + 1;
    }
    if (args.is(word, 'FROMMEMBER') && left >= 1 && !this.#hasPosition) {
      // Without a row there is no member to be missed.
      if (row !== 0 && !findMember(rows, row, args, word + 1, this.area.center)) throw noMember;
      this.#hasMember = true;
      return word + 2;
    }
    if (args.is(word, 'FROMLONLAT') && left >= 2 && !this.#hasMember) {
      positionAt(args, word + 1, this.area.center);
      this.#hasPosition = true;
      return word + 3;
    }
    if (args.is(word, 'BYRADIUS') && left >= 2 && !this.#hasBox) {
      this.#radius(args, word + 1);
      this.#hasRadius = true;
      return word + 3;
    }
    if (args.is(word, 'BYBOX') && left >= 3 && !this.#hasRadius) {
      this.#box(args, word + 1);
      this.#hasBox = true;
      return word + 4;
    }
    throw syntaxError;
  }

  #radius(args: Arguments, word: number): void {
    const radius = args.float(word, radiusError);
    if (radius < 0) throw negativeRadius;
    this.unit = unitAt(args, word + 1);
    this.area.radius = radius * this.unit;
  }

  #box(args: Arguments, word: number): void {
    const width = args.float(word, widthError);
    const height = args.float(word + 1, heightError);
    if (width < 0 || height < 0) throw negativeBox;
    this.unit = unitAt(args, word + 2);
    this.area.radius = undefined;
    this.area.width = width * this.unit;
    this.area.height = height * this.unit;
  }

  #check(args: Arguments, form: SearchForm): void {
    if (this.storeWord !== 0 && (this.withDistance || this.withHash || this.withPosition)) {
      const what = form.stores === 'always' ? 'GEOSEARCHSTORE' : 'STORE option in GEORADIUS';
      throw new CommandError(
        `ERR ${what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options`,
      );
    }
    if (form.center === 'option') {
      const name = args.latin1(0);
      if (!this.#hasMember && !this.#hasPosition) throw oneOf('FROMMEMBER or FROMLONLAT', name);
      if (!this.#hasRadius && !this.#hasBox) throw oneOf('BYRADIUS and BYBOX', name);
    }
    if (this.any && this.count === 0) throw anyError;
    // So many places without an order are the nearest ones.
    if (this.count !== 0 && this.order === 0 && !this.any) this.order = 1;
  }
}

function oneOf(options: string, name: string): CommandError {
  return new CommandError(`ERR exactly one of ${options} can be specified for ${name}`);
}
