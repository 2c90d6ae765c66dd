// Sorts rows by time. A series may have millions of rows in the head, most of them in order. So ordered runs are
// found and merged: a single run takes one pass over its rows, and no comparison calls a function.

/** Sorts both by `times`; rows of one time stay as they are. */
export function sortByTime(rows: Uint32Array, times: Float64Array, count: number): void {
  let ends = runsOf(times, count);
  if (ends.length === 1) return;
  let fromRows = rows;
  let fromTimes = times;
  let toRows: Uint32Array = new Uint32Array(count);
  let toTimes: Float64Array = new Float64Array(count);
  while (ends.length > 1) {
    const merged: number[] = [];
    let start = 0;
    for (let run = 0; run < ends.length; run += 2) {
      const middle = ends[run]!;
      const end = ends[run + 1] ?? middle;
      let a = start;
      let b = middle;
      for (let to = start; to < end; to++) {
        const from = b >= end || (a < middle && fromTimes[a]! <= fromTimes[b]!) ? a++ : b++;
        toRows[to] = fromRows[from]!;
        toTimes[to] = fromTimes[from]!;
      }
      merged.push(end);
      start = end;
    }
    ends = merged;
    [fromRows, toRows] = [toRows, fromRows];
    [fromTimes, toTimes] = [toTimes, fromTimes];
  }
  if (fromRows === rows) return;
  rows.set(fromRows.subarray(0, count));
  times.set(fromTimes.subarray(0, count));
}

/** Where the runs end in which no time is before the one in front of it. */
function runsOf(times: Float64Array, count: number): number[] {
  const ends: number[] = [];
  for (let i = 1; i < count; i++) if (times[i]! < times[i - 1]!) ends.push(i);
  ends.push(count);
  return ends;
}
