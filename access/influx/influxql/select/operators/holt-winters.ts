// holt_winters: points that continue where a series ends, by its level, trend and season (the damped method
// of Holt and Winters, fitted by Nelder and Mead's).

import { minimise } from './nelder-mead.ts';
import {
  bigTime,
  baseOf,
  type Chunk,
  has,
  numberAt,
  numberColumn,
  offsetFrom,
  pending,
  type Stream,
} from '../vector.ts';

interface HoltWintersOptions {
  /** How many points are foretold. */
  readonly points: number;
  readonly season: number;
  /** Whether fitted values of the known points are included. */
  readonly withFit: boolean;
  /** Nanoseconds between points. */
  readonly interval: bigint;
}

const guesses = [0.3, 0.7];
const epsilon = 1e-4;
const weight = 0.5;
/** Beyond this a season or a forecast would take for ever. */
const most = 100_000;

export class HoltWinters implements Stream {
  readonly #input: Stream;
  readonly #options: HoltWintersOptions;
  readonly #times: bigint[] = [];
  readonly #values: number[] = [];
  #isDone = false;

  constructor(input: Stream, options: HoltWintersOptions) {
    this.#input = input;
    this.#options = options;
  }

  next(): Chunk | typeof pending | undefined {
    if (this.#isDone) return undefined;
    const chunk = this.#input.next();
    if (chunk === pending) return pending;
    if (chunk === undefined) {
      this.#isDone = true;
      return this.#forecast();
    }
    const [column] = chunk.columns;
    for (let row = 0; row < chunk.count; row++) {
      if (!has(column, row)) continue;
      this.#times.push(bigTime(chunk.base, chunk.times[row]!));
      this.#values.push(numberAt(column, row));
    }
    return pending;
  }

  #forecast(): Chunk | undefined {
    const { points, season, withFit, interval } = this.#options;
    const known = this.#times.length;
    const isSeasonal = season >= 2;
    if (known < 2 || (isSeasonal && known < season) || points > most) return undefined;
    const values = this.#even();
    if (values === undefined) return undefined;
    const forecast = fitted(values, isSeasonal ? season : 0, points);
    const shown = withFit ? forecast : forecast.subarray(values.length);
    const start = withFit ? this.#times[0]! : this.#times[known - 1]! + interval;
    const base = baseOf(start);
    const offset = offsetFrom(base, start);
    const kept = Array.from(shown, (value, i) => ({
      value,
      time: offset + Number(interval) * i,
    })).filter(({ value, time }) => !Number.isNaN(value) && time <= Number.MAX_SAFE_INTEGER);
    if (kept.length === 0) return undefined;
    const times = Float64Array.from(kept, ({ time }) => time);
    const column = numberColumn(
      'float',
      Float64Array.from(kept, ({ value }) => value),
    );
    return { base, times, count: kept.length, columns: [column] };
  }

  /** One value an interval, NaN where there is none. */
  #even(): Float64Array | undefined {
    const places = this.#times.map((time) => this.#place(time));
    const first = places[0]!;
    const count = Number(places[places.length - 1]! - first) + 1;
    if (count < 2 || count > most * 10) return undefined;
    const values = new Float64Array(count).fill(NaN);
    places.forEach((place, i) => {
      const at = Number(place - first);
      if (Number.isNaN(values[at]!)) values[at] = this.#values[i]!;
    });
    return values;
  }

  /** The nearest multiple of the interval. */
  #place(time: bigint): bigint {
    const { interval } = this.#options;
    const whole = time / interval;
    return time % interval > interval / 2n ? whole + 1n : whole;
  }
}

/** Fitted values of the known points and forecasts of `more` points, with the best parameters. */
function fitted(values: Float64Array, season: number, more: number): Float64Array {
  const parameters = new Float64Array(6 + season);
  parameters[4] = firstLevel(values, season);
  parameters[5] = firstTrend(values, season);
  for (let i = 0; i < season; i++) {
    const value = values[i]!;
    parameters[6 + i] = Number.isNaN(value) ? 0 : value / parameters[4]!;
  }
  let best: Float64Array | undefined;
  let least = Infinity;
  for (const alpha of guesses) {
    for (const beta of guesses) {
      for (const gamma of guesses) {
        for (const phi of guesses) {
          parameters.set([alpha, beta, gamma, phi]);
          const found = minimise((p) => squaredError(values, p, season), parameters, epsilon);
          if (found.value < least || best === undefined) {
            least = found.value;
            best = found.parameters;
          }
        }
      }
    }
  }
  return forecast(values, best!, season, more);
}

function firstLevel(values: Float64Array, season: number): number {
  if (season === 0) return weight * values[0]!;
  let level = 0;
  for (let i = 0; i < season && i < values.length; i++) {
    if (!Number.isNaN(values[i]!)) level += (1 / season) * values[i]!;
  }
  return level;
}

function firstTrend(values: Float64Array, season: number): number {
  if (season === 0) {
    return Number.isNaN(values[1]!) ? 0 : weight * (values[1]! - values[0]!);
  }
  let trend = 0;
  for (let i = 0; i < season && season + i < values.length; i++) {
    const change = values[season + i]! - values[i]!;
    if (!Number.isNaN(change)) trend += (1 / (season * season)) * change;
  }
  return trend;
}

function squaredError(values: Float64Array, parameters: Float64Array, season: number): number {
  const said = forecast(values, parameters, season, 0);
  let error = 0;
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i]!)) continue;
    if (Number.isNaN(said[i]!)) return Infinity;
    error += (said[i]! - values[i]!) ** 2;
  }
  return error;
}

/** Parameters: alpha, beta, gamma, phi (each between 0 and 1, and made so), level, trend, seasons. */
function forecast(
  values: Float64Array,
  parameters: Float64Array,
  season: number,
  more: number,
): Float64Array {
  for (let i = 0; i < 4; i++) parameters[i] = Math.min(1, Math.max(0, parameters[i]!));
  const [alpha, beta, gamma, phi] = parameters as unknown as [number, number, number, number];
  const seasons = parameters.subarray(6);
  let y = values[0]!;
  let level = parameters[4]!;
  let trend = parameters[5]!;
  let damping = phi;
  let shift = season - 1;
  const said = new Float64Array(values.length + more);
  said[0] = y;
  for (let t = 1; t < said.length; t++) {
    let now = 1;
    let then = 1;
    if (season > 0) {
      const ahead = t % season;
      now = seasons[modulo(t - season + shift, season)]!;
      then = seasons[modulo(t - season + ahead + shift, season)]!;
    }
    const expected = level + phi * trend;
    const nextLevel = alpha * (y / now) + (1 - alpha) * expected;
    const nextTrend = beta * (nextLevel - level) + (1 - beta) * phi * trend;
    const nextSeason = gamma * (y / expected) + (1 - gamma) * now;
    y = (nextLevel + damping * nextTrend) * then;
    level = nextLevel;
    trend = nextTrend;
    damping += phi ** t;
    if (season > 0) {
      seasons[modulo(t + shift, season)] = nextSeason;
      shift++;
    }
    said[t] = y;
  }
  return said;
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
