// Which periods a series has: daily, weekly, and odd ones such as the 3.5 days of a TTL (ABase, section 5.2, issue 2).
// The power spectral density is scanned with hours that are missing at zero; each peak is then fitted by least squares
// (Lomb and Scargle), for which they are simply not there.

import { hoursPerDay, hoursPerWeek } from '../usage-history.ts';

const shortestPeriodHours = 6;
const longestPeriodHours = 240;
/** A period must be seen at least so often. */
const fewestCycles = 2.5;
/** Frequencies are this much finer than one cycle over the whole series. */
const oversampling = 2;
/** Less of the variance than this is no period. */
const smallestPart = 0.04;
const mostPeriods = 3;
/** A period near a multiple of half a day is taken for it if that costs at most this part of its power. */
const snapTolerance = 0.1;

export interface Period {
  hours: number;
  /** The part of the variance that a sine of this period explains, 0 to 1. */
  power: number;
}

/**
 * The periods of `values` where `known` is not 0, strongest first, at most three and none a harmonic of another. A
 * straight line is taken off first.
 */
export function findPeriods(values: Float64Array, known: Uint8Array): Period[] {
  const residual = withoutLine(values, known);
  let total = 0;
  let count = 0;
  for (let i = 0; i < residual.length; i++) {
    total += residual[i]! * residual[i]!;
    count += known[i]!;
  }
  if (!(total > 0)) return [];
  const longest = Math.min(longestPeriodHours, values.length / fewestCycles);
  const slowest = Math.ceil((oversampling * values.length) / longest);
  const fastest = Math.floor((oversampling * values.length) / shortestPeriodHours);
  const found: Period[] = [];
  const least = Math.max(smallestPart, significantPart(count, fastest - slowest));
  for (let round = 0; round < 2 * mostPeriods && found.length < mostPeriods; round++) {
    const peak = strongest(residual, slowest, fastest);
    if (peak === undefined) break;
    const { power, left } = powerAt(residual, known, peak);
    if ((power * left) / total < least) break;
    const hours = snapped(residual, known, peak, power);
    if (!found.some((other) => isHarmonic(hours, other.hours))) {
      found.push({ hours, power: (power * left) / total });
    }
    removeSines(residual, known, hours);
  }
  return found;
}

/** The part of the variance that white noise reaches at any of so many frequencies with a probability of 0.1 %. */
function significantPart(count: number, frequencies: number): number {
  return (2 * Math.log(Math.max(1, frequencies) / 0.001)) / Math.max(1, count);
}

function isHarmonic(hours: number, fundamental: number): boolean {
  const ratio = fundamental / hours;
  return Math.abs(ratio - Math.round(ratio)) < 0.03 && ratio > 0.97;
}

function withoutLine(values: Float64Array, known: Uint8Array): Float64Array {
  let [n, sx, sy, sxx, sxy] = [0, 0, 0, 0, 0];
  for (let x = 0; x < values.length; x++) {
    if (known[x] === 0) continue;
    n++;
    sx += x;
    sy += values[x]!;
    sxx += x * x;
    sxy += x * values[x]!;
  }
  const spread = n * sxx - sx * sx;
  const slope = spread === 0 ? 0 : (n * sxy - sx * sy) / spread;
  const start = n === 0 ? 0 : (sy - slope * sx) / n;
  const flat = Float64Array.from(values, (y, x) => (known[x] === 0 ? 0 : y - start - slope * x));
  // The residual of a straight line is rounding error.
  const scale = Math.abs(start) + Math.abs(slope) * values.length;
  return flat.every((y) => Math.abs(y) <= 1e-9 * scale) ? flat.fill(0) : flat;
}

/** The period in hours of the highest peak of the spectrum between two numbers of cycles. */
function strongest(residual: Float64Array, slowest: number, fastest: number): number | undefined {
  let best: Period | undefined;
  for (let k = slowest; k <= fastest; k++) {
    const hours = (oversampling * residual.length) / k;
    const power = squaredAmplitude(residual, (2 * Math.PI) / hours);
    if (best === undefined || power > best.power) best = { hours, power };
  }
  return best?.hours;
}

/** Squared amplitude of the series' Fourier transform at this many radians an hour (Goertzel). */
function squaredAmplitude(values: Float64Array, radians: number): number {
  const factor = 2 * Math.cos(radians);
  let [last, lastButOne] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    const next = values[i]! + factor * last - lastButOne;
    lastButOne = last;
    last = next;
  }
  return last * last + lastButOne * lastButOne - factor * last * lastButOne;
}

/** The part of the series' squares, which are `left`, that sine and cosine of this period explain together. */
function powerAt(
  residual: Float64Array,
  known: Uint8Array,
  hours: number,
): { power: number; left: number } {
  const { explained, left } = fitSine(residual, known, hours);
  return { power: left === 0 ? 0 : explained / left, left };
}

interface SineFit {
  cosine: number;
  sine: number;
  /** Sums of squares: explained by the sine, and total. */
  explained: number;
  left: number;
}

/** Least squares of one sine and cosine, by their 2 x 2 normal equations. Turns a phasor instead of calling `cos`. */
function fitSine(residual: Float64Array, known: Uint8Array, hours: number): SineFit {
  const step = (2 * Math.PI) / hours;
  const [turnC, turnS] = [Math.cos(step), Math.sin(step)];
  let [c, s] = [1, 0];
  let [cc, ss, cs, yc, ys, left] = [0, 0, 0, 0, 0, 0];
  for (let i = 0; i < residual.length; i++) {
    if (known[i] !== 0) {
      const y = residual[i]!;
      cc += c * c;
      ss += s * s;
      cs += c * s;
      yc += y * c;
      ys += y * s;
      left += y * y;
    }
    const next = c * turnC - s * turnS;
    s = s * turnC + c * turnS;
    c = next;
  }
  const determinant = cc * ss - cs * cs;
  if (!(determinant > 1e-9 * cc * ss)) return { cosine: 0, sine: 0, explained: 0, left };
  const cosine = (yc * ss - ys * cs) / determinant;
  const sine = (ys * cc - yc * cs) / determinant;
  return { cosine, sine, explained: cosine * yc + sine * ys, left };
}

/** The period itself, finer than the grid, or the multiple of half a day near it. */
function snapped(residual: Float64Array, known: Uint8Array, hours: number, power: number): number {
  const step = hours ** 2 / (oversampling * residual.length);
  const half = hoursPerDay / 2;
  const candidates = [
    hoursPerDay,
    hoursPerWeek,
    Math.round(hours / half) * half,
    Math.round(hours),
  ];
  for (const candidate of candidates) {
    if (candidate < shortestPeriodHours || Math.abs(candidate - hours) > step) continue;
    if (powerAt(residual, known, candidate).power >= power * (1 - snapTolerance)) return candidate;
  }
  return Math.round(hours);
}

/** Takes the period and its overtones off, so that the next search does not find them again. */
function removeSines(residual: Float64Array, known: Uint8Array, hours: number): void {
  for (let harmonic = 1; harmonic <= 4 && hours / harmonic >= 4; harmonic++) {
    const { cosine, sine } = fitSine(residual, known, hours / harmonic);
    const step = (2 * Math.PI * harmonic) / hours;
    for (let i = 0; i < residual.length; i++) {
      if (known[i] === 0) continue;
      residual[i]! -= cosine * Math.cos(step * i) + sine * Math.sin(step * i);
    }
  }
}
