// Positions on earth as scores of 52 bits, and the cells around an area: Redis's geohash. The ranges of
// longitude and latitude are halved `step` times each; the bits of both, taken in turns, latitude in the
// lowest one, are the number of a cell. Places that are near each other mostly have numbers that are.

export const maxLongitude = 180;
export const maxLatitude = 85.05112878;
export const mostSteps = 26;

/** Earth radius of WGS-84 as Redis uses it, in meters. */
const earthRadius = 6372797.560856;
const mercatorMax = 20037726.37;
const degree = Math.PI / 180;
const twoTo32 = 2 ** 32;

export interface Position {
  longitude: number;
  latitude: number;
}

/** A cell: column and row among 2^step of each. */
export interface Cell {
  x: number;
  y: number;
  step: number;
}

export interface CircleOrBox {
  center: Position;
  /** Radius of a circle, in meters; `undefined` for a box. */
  radius: number | undefined;
  /** Width of a box, in meters. */
  width: number;
  height: number;
}

/** The low 16 bits with a zero before each. */
function spread(n: number): number {
  let x = n & 0xffff;
  x = (x | (x << 8)) & 0x00ff00ff;
  x = (x | (x << 4)) & 0x0f0f0f0f;
  x = (x | (x << 2)) & 0x33333333;
  return (x | (x << 1)) & 0x55555555;
}

/** Every other bit of 32, from the lowest. */
function gather(n: number): number {
  let x = n & 0x55555555;
  x = (x | (x >>> 1)) & 0x33333333;
  x = (x | (x >>> 2)) & 0x0f0f0f0f;
  x = (x | (x >>> 4)) & 0x00ff00ff;
  return (x | (x >>> 8)) & 0xffff;
}

function interleave(y: number, x: number): number {
  const low = (spread(y) | (spread(x) << 1)) >>> 0;
  const high = spread(y >>> 16) + 2 * spread(x >>> 16);
  return high * twoTo32 + low;
}

function cellAt(position: Position, step: number, latitudes = maxLatitude): Cell {
  const cells = 2 ** step;
  const y = ((position.latitude + latitudes) / (2 * latitudes)) * cells;
  const x = ((position.longitude + maxLongitude) / (2 * maxLongitude)) * cells;
  return { x: Math.floor(x), y: Math.floor(y), step };
}

/** The score of a place. */
export function scoreOf(position: Position): number {
  const { x, y } = cellAt(position, mostSteps);
  return interleave(y, x);
}

/** Sets `position` to the place in the middle of the cell that a score is the number of. */
export function decodeScore(score: number, position: Position): void {
  let low: number;
  let high: number;
  if (score >= 0 && score < 2 ** 53) {
    low = score >>> 0;
    high = Math.floor(score / twoTo32);
  } else {
    // No place has such a score; Redis converts it as its processor does.
    const bits = BigInt.asUintN(64, bitsOfOddScore(score));
    low = Number(bits & 0xffffffffn);
    high = Number(bits >> 32n);
  }
  const y = gather(low) + gather(high) * 65536;
  const x = gather(low >>> 1) + gather(high >>> 1) * 65536;
  const cells = 2 ** mostSteps;
  position.longitude = middle(x, cells, maxLongitude);
  position.latitude = middle(y, cells, maxLatitude);
}

function bitsOfOddScore(score: number): bigint {
  if (score >= 2 ** 64) return 0n;
  return score >= -(2 ** 63) ? BigInt(Math.trunc(score)) : 2n ** 63n;
}

function edge(n: number, cells: number, max: number): number {
  return -max + (n / cells) * (2 * max);
}

function middle(n: number, cells: number, max: number): number {
  const at = (edge(n, cells, max) + edge(n + 1, cells, max)) / 2;
  return Math.max(-max, Math.min(max, at));
}

const alphabet = '0123456789bcdefghjkmnpqrstuvwxyz';

/** The standard geohash of a place, whose latitudes go to the poles: 10 digits and, as Redis says it, a 0. */
export function geohashText(position: Position): string {
  const { x, y } = cellAt(position, mostSteps, 90);
  let text = '';
  for (let bit = 51; bit >= 2; bit -= 5) {
    let digit = 0;
    for (let i = bit; i > bit - 5; i--) digit = digit * 2 + (((i & 1 ? x : y) >> (i >> 1)) & 1);
    text += alphabet[digit]!;
  }
  return `${text}0`;
}

/** Meters between two places, along the sphere (haversine). */
export function distanceBetween(
  longitude1: number,
  latitude1: number,
  longitude2: number,
  latitude2: number,
): number {
  const v = Math.sin((longitude2 * degree - longitude1 * degree) / 2);
  if (v === 0) return latitudeDistance(latitude1, latitude2);
  const from = latitude1 * degree;
  const to = latitude2 * degree;
  const u = Math.sin((to - from) / 2);
  const a = u * u + Math.cos(from) * Math.cos(to) * v * v;
  // For two places on opposite sides of the earth, rounding may make this more than 1.
  return 2 * earthRadius * Math.asin(Math.min(1, Math.sqrt(a)));
}

function latitudeDistance(from: number, to: number): number {
  return earthRadius * Math.abs(to * degree - from * degree);
}

/** Meters from the center to a place in the area, or -1 when it is outside. */
export function distanceWithin(area: CircleOrBox, place: Position): number {
  const { longitude, latitude } = area.center;
  if (area.radius !== undefined) {
    const distance = distanceBetween(longitude, latitude, place.longitude, place.latitude);
    return distance > area.radius ? -1 : distance;
  }
  if (latitudeDistance(place.latitude, latitude) > area.height / 2) return -1;
  const across = distanceBetween(place.longitude, place.latitude, longitude, place.latitude);
  if (across > area.width / 2) return -1;
  return distanceBetween(longitude, latitude, place.longitude, place.latitude);
}

/** Cells of a score by which rounding may move an edge, and more. */
const slack = 4;

/**
 * The rows and columns of the finest cells that an area reaches into: most places in the cells around an area are found
 * outside by these, without any trigonometry.
 */
export class AreaBox {
  readonly #south: number;
  readonly #north: number;
  readonly #west: number;
  readonly #east: number;

  constructor(area: CircleOrBox) {
    const { south, north, west, east } = boundsOf(area);
    const cells = 2 ** mostSteps;
    const row = (latitude: number): number =>
      ((latitude + maxLatitude) / (2 * maxLatitude)) * cells;
    const column = (longitude: number): number =>
      ((longitude + maxLongitude) / (2 * maxLongitude)) * cells;
    this.#south = row(south) - slack;
    this.#north = row(north) + slack;
    // An area over a pole or the 180th meridian has places on both sides of the map. Near a pole `boundsOf` is no bound.
    const isPlain =
      west > -maxLongitude &&
      east < maxLongitude &&
      west < east &&
      south > -maxLatitude &&
      north < maxLatitude;
    this.#west = isPlain ? column(west) - slack : -Infinity;
    this.#east = isPlain ? column(east) + slack : Infinity;
  }

  /** Whether the place of a score may be in the area. */
  mayHold(score: number): boolean {
    // No place has another score; see `decodeScore`.
    if (!(score >= 0 && score < 2 ** 53)) return true;
    const low = score >>> 0;
    const high = Math.floor(score / twoTo32);
    const y = gather(low) + gather(high) * 65536;
    if (y < this.#south || y > this.#north) return false;
    const x = gather(low >>> 1) + gather(high >>> 1) * 65536;
    return x >= this.#west && x <= this.#east;
  }
}

/** Number of halvings for which nine cells cover this distance from a place. */
function stepsFor(meters: number, latitude: number): number {
  if (meters === 0) return mostSteps;
  let step = 1;
  for (let range = meters; range < mercatorMax; range *= 2) step++;
  step -= 2;
  // Cells are narrower towards the poles.
  if (latitude > 66 || latitude < -66) step--;
  if (latitude > 80 || latitude < -80) step--;
  return Math.max(1, Math.min(mostSteps, step));
}

interface Bounds {
  west: number;
  south: number;
  east: number;
  north: number;
}

function boundsOf(area: CircleOrBox): Bounds {
  const { longitude, latitude } = area.center;
  const up = area.radius ?? area.height / 2;
  const across = area.radius ?? area.width / 2;
  const dy = up / earthRadius / degree;
  const nearest = latitude < 0 ? latitude - dy : latitude + dy;
  const dx = across / earthRadius / Math.cos(nearest * degree) / degree;
  return {
    west: longitude - dx,
    south: latitude - dy,
    east: longitude + dx,
    north: latitude + dy,
  };
}

function boundsOfCell({ x, y, step }: Cell): Bounds {
  const cells = 2 ** step;
  return {
    west: edge(x, cells, maxLongitude),
    south: edge(y, cells, maxLatitude),
    east: edge(x + 1, cells, maxLongitude),
    north: edge(y + 1, cells, maxLatitude),
  };
}

/** The cell so many columns and rows away; the other edge follows on an edge. */
function neighbor(cell: Cell, dx: number, dy: number): Cell {
  const mask = 2 ** cell.step - 1;
  const x = dx === 0 ? cell.x : (cell.x + dx) & mask;
  const y = dy === 0 ? cell.y : (cell.y + dy) & mask;
  return { x, y, step: cell.step };
}

/** Whether cells of the step do not reach as far as the area does. */
function areTooSmall(center: Cell, bounds: Bounds): boolean {
  return (
    boundsOfCell(neighbor(center, 0, 1)).north < bounds.north ||
    boundsOfCell(neighbor(center, 0, -1)).south > bounds.south ||
    boundsOfCell(neighbor(center, 1, 0)).east < bounds.east ||
    boundsOfCell(neighbor(center, -1, 0)).west > bounds.west
  );
}

/** In the order in which Redis looks at them: the center, N, S, E, W, NE, NW, SE, SW. */
const around: readonly (readonly [dx: number, dy: number])[] = [
  [0, 0],
  [0, 1],
  [0, -1],
  [1, 0],
  [-1, 0],
  [1, 1],
  [-1, 1],
  [1, -1],
  [-1, -1],
];

/** Scores from `min` on, below `max`. */
export interface CellRange {
  min: number;
  max: number;
}

/** The scores of the cells that cover the area, in the order in which Redis looks at them. */
export function rangesOf(area: CircleOrBox): CellRange[] {
  const bounds = boundsOf(area);
  const reach = area.radius ?? Math.sqrt((area.width / 2) ** 2 + (area.height / 2) ** 2);
  let step = stepsFor(reach, area.center.latitude);
  let center = cellAt(area.center, step);
  if (step > 1 && areTooSmall(center, bounds)) center = cellAt(area.center, --step);
  const own = boundsOfCell(center);
  const ranges: CellRange[] = [];
  const size = 4 ** (mostSteps - step);
  let last: Cell | undefined;
  for (const [i, [dx, dy]] of around.entries()) {
    if (step >= 2 && isUseless(dx, dy, own, bounds)) continue;
    const cell = i === 0 ? center : neighbor(center, dx, dy);
    // Around most of the earth the same cell may come again; Redis looks at it again but for this case.
    if (last !== undefined && last.x === cell.x && last.y === cell.y) continue;
    if (i > 0) last = cell;
    const min = interleave(cell.y, cell.x) * size;
    ranges.push({ min, max: min + size });
  }
  return ranges;
}

/** The area does not reach beyond the center's cell on that side. */
function isUseless(dx: number, dy: number, own: Bounds, bounds: Bounds): boolean {
  return (
    (dy < 0 && own.south < bounds.south) ||
    (dy > 0 && own.north > bounds.north) ||
    (dx < 0 && own.west < bounds.west) ||
    (dx > 0 && own.east > bounds.east)
  );
}
