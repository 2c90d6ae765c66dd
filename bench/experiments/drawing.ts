// The two pictures of an experiment side by side, on the same axes, as SVG.

import type { Experiment, Heat, Outcome, Picture } from './experiment.ts';

const width = 400;
const height = 240;
const margin = { left: 64, top: 44, right: 16, bottom: 44 };
const colours = ['#2c6fbb', '#c0392b', '#3a7d44', '#8e44ad', '#d68910', '#16a085', '#7f8c8d'];
const ticks = 5;
/** Colours of a heat map, from cold to hot. */
const heatColours = ['#eef3fa', '#c9dcf0', '#8fbbdd', '#f6d77a', '#f0a04b', '#dd5a3a', '#9c1f2e'];
const heatColumns = 100;
const heatRows = 54;
/** More points than this on a line are more than it has pixels. */
const mostPoints = 800;

interface Axes {
  x: (value: number) => number;
  y: (value: number) => number;
  xTicks: number[];
  yTicks: number[];
}

export function drawPictures({ id, title }: Experiment, outcome: Outcome): string {
  const { before, after, xLabel, yLabel } = outcome;
  const axes = axesOf([before, after]);
  const whole = margin.left + width + margin.right;
  const labels = [...new Set([...before.lines, ...after.lines].map(({ label }) => label))];
  const bottom = margin.top + height + margin.bottom;
  const legendRows = Math.ceil(labels.length / 4);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${whole * 2}" height="${bottom + 24 + legendRows * 18}" font-family="sans-serif" font-size="11">`,
    '<rect width="100%" height="100%" fill="white"/>',
    `<text x="8" y="16" font-size="13">${escaped(`${id}: ${title}`)}</text>`,
    draw(before, labels, axes, xLabel, yLabel, 0),
    draw(after, labels, axes, xLabel, yLabel, whole),
    ...labels.map((label, i) => legend(label, i, bottom)),
    '</svg>\n',
  ].join('\n');
}

function axesOf(pictures: readonly Picture[]): Axes {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, 0, -Infinity];
  for (const { lines, heat } of pictures) {
    if (heat !== undefined) {
      [x0, x1] = [Math.min(x0, heat.x[0]), Math.max(x1, heat.x[1])];
      y1 = Math.max(y1, heat.rows.length);
    }
    for (const { points } of lines) {
      for (const [x, y] of points) {
        x0 = Math.min(x0, x);
        x1 = Math.max(x1, x);
        y0 = Math.min(y0, y);
        y1 = Math.max(y1, y);
      }
    }
  }
  if (!(x1 > x0)) x1 = x0 + 1;
  if (!(y1 > y0)) y1 = y0 + 1;
  const steps = (from: number, to: number): number[] =>
    Array.from({ length: ticks }, (_, i) => from + ((to - from) * i) / (ticks - 1));
  return {
    x: (value) => margin.left + ((value - x0) / (x1 - x0)) * width,
    y: (value) => margin.top + height - ((value - y0) / (y1 - y0)) * height,
    xTicks: steps(x0, x1),
    yTicks: steps(y0, y1),
  };
}

function draw(
  { title, lines, heat }: Picture,
  labels: readonly string[],
  { x, y, xTicks, yTicks }: Axes,
  xLabel: string,
  yLabel: string,
  shift: number,
): string {
  const bottom = margin.top + height;
  return [
    `<g transform="translate(${shift} 0)">`,
    `<text x="${margin.left}" y="${margin.top - 10}" font-size="12">${escaped(title)}</text>`,
    ...yTicks.map(
      (tick) =>
        `<line x1="${margin.left}" x2="${margin.left + width}" y1="${at(y(tick))}" y2="${at(y(tick))}" stroke="#dddddd"/>` +
        `<text x="${margin.left - 6}" y="${at(y(tick) + 4)}" text-anchor="end">${figure(tick)}</text>`,
    ),
    ...xTicks.map(
      (tick) =>
        `<text x="${at(x(tick))}" y="${bottom + 16}" text-anchor="middle">${figure(tick)}</text>`,
    ),
    `<text x="${margin.left + width / 2}" y="${bottom + 34}" text-anchor="middle">${escaped(xLabel)}</text>`,
    `<text transform="translate(14 ${margin.top + height / 2}) rotate(-90)" text-anchor="middle">${escaped(yLabel)}</text>`,
    ...(heat === undefined ? [] : drawHeat(heat)),
    ...lines.map(({ label, points }) => {
      const step = Math.max(1, Math.ceil(points.length / mostPoints));
      const path = points
        .filter((_, i) => i % step === 0 || i === points.length - 1)
        .map(([px, py], i) => `${i === 0 ? 'M' : 'L'}${at(x(px))} ${at(y(py))}`)
        .join('');
      return `<path d="${path}" fill="none" stroke="${colourOf(labels.indexOf(label))}" stroke-width="1.4"/>`;
    }),
    '</g>',
  ].join('\n');
}

/** One path a colour: neighbours of one colour are one stroke. */
function drawHeat({ rows, most }: Heat): string[] {
  const bands = Math.min(heatRows, rows.length);
  const columns = Math.min(heatColumns, rows[0]!.length);
  const [cellWidth, cellHeight] = [width / columns, height / bands];
  const paths = heatColours.map(() => '');
  for (let band = 0; band < bands; band++) {
    const y = at(margin.top + (band + 0.5) * cellHeight);
    let begin = 0;
    for (let column = 0; column < columns; column++) {
      const level = levelOf(rows, band / bands, (band + 1) / bands, column / columns, most);
      const isLast = column === columns - 1;
      if (
        !isLast &&
        level === levelOf(rows, band / bands, (band + 1) / bands, (column + 1) / columns, most)
      ) {
        continue;
      }
      paths[level] +=
        `M${at(margin.left + begin * cellWidth)} ${y}H${at(margin.left + (column + 1) * cellWidth)}`;
      begin = column + 1;
    }
  }
  return paths.map(
    (path, level) =>
      `<path d="${path}" stroke="${heatColours[level]}" stroke-width="${at(cellHeight + 0.2)}"/>`,
  );
}

/** Colour of the largest value in a cell, so that no peak gets lost; `from`, `to` and `left` are shares of the map. */
function levelOf(
  rows: readonly ArrayLike<number>[],
  from: number,
  to: number,
  left: number,
  most: number,
): number {
  let largest = 0;
  const lastRow = Math.max(Math.floor(from * rows.length) + 1, Math.floor(to * rows.length));
  for (let row = Math.floor(from * rows.length); row < lastRow; row++) {
    const values = rows[row]!;
    const columns = Math.min(heatColumns, values.length);
    const first = Math.round(left * values.length);
    for (let i = first; i < first + values.length / columns; i++) {
      largest = Math.max(largest, values[i] ?? 0);
    }
  }
  return Math.min(heatColours.length - 1, Math.floor((largest / most) * heatColours.length));
}

function legend(label: string, i: number, top: number): string {
  const left = margin.left + (i % 4) * 200;
  const y = top + 14 + Math.floor(i / 4) * 18;
  return (
    `<rect x="${left}" y="${y - 8}" width="14" height="4" fill="${colourOf(i)}"/>` +
    `<text x="${left + 20}" y="${y - 2}">${escaped(label)}</text>`
  );
}

function colourOf(i: number): string {
  return colours[i % colours.length]!;
}

function at(value: number): string {
  return value.toFixed(1);
}

function figure(value: number): string {
  const size = Math.abs(value);
  if (size >= 10_000) return `${Number((value / 1000).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
