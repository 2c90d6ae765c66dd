// An experiment runs with and without one mechanism's policy, and compares the result with its
// target. Those of kind SIM run the real policy code on a simulated clock and random numbers, so
// that a seed gives the same run anywhere; those of kind LIVE run real processes.

type ExperimentKind = 'SIM' | 'LIVE';

export interface ExperimentContext {
  /** A shorter run, of the same thresholds. */
  quick: boolean;
  /** One run for each; thresholds hold for the mean unless a measure says otherwise. */
  seeds: readonly number[];
  /** Says how far it has come. */
  progress: (text: string) => void;
}

/** One figure with its target. */
export interface Measure {
  /** In words, with its unit: `satisfied rate of gateway 2, %`. */
  metric: string;
  value: number;
  /** The least and the most of the runs, where `value` is their mean. */
  spread?: readonly [least: number, most: number];
  /** Absent: a figure that is shown and not judged. */
  threshold?: number;
  better: 'higher' | 'lower';
  /** The same without the mechanism. */
  without?: number;
  /** The paper's figure, as printed. */
  paper?: string;
}

export interface Line {
  label: string;
  points: readonly (readonly [x: number, y: number])[];
}

/** A heat map: a row of values for each band of the y axis, from top to bottom; each row spans the x axis. */
export interface Heat {
  rows: readonly ArrayLike<number>[];
  /** Values from 0 to this have colours; above it they have the last one. */
  most: number;
  /** First and last x. */
  x: readonly [number, number];
}

/** One of the two pictures of an experiment, drawn on the same axes. */
export interface Picture {
  title: string;
  lines: readonly Line[];
  /** Drawn in place of lines. */
  heat?: Heat;
}

export interface Outcome {
  measures: readonly Measure[];
  xLabel: string;
  yLabel: string;
  /** Without the mechanism, and with it. */
  before: Picture;
  after: Picture;
  /** Why a measure falls short, where one does and the reason is known. */
  explanation?: string;
}

/** Results of a full run. */
export interface Recorded {
  id: string;
  date: string;
  /**
   * Commit of the tree that was run, followed by `+` if files had been changed since; absent in old
   * records.
   */
  commit?: string;
  seconds: number;
  outcome: Outcome;
}

export interface Experiment {
  /** Id of the mechanism, for example `XS-5.2-autoscale`. */
  id: string;
  title: string;
  kind: ExperimentKind;
  /** Where the mechanism comes from: paper and section, figure or table. */
  source: string;
  /** The setup in a sentence or two. */
  setup: string;
  /** Seeds of the quick form where the means of three vary too much to be judged, or one does; 3 by default. */
  quickSeeds?: number;
  run(context: ExperimentContext): Promise<Outcome> | Outcome;
}

/** Also true for a figure that is not judged. */
export function reaches({ value, threshold, better }: Measure): boolean {
  if (threshold === undefined) return true;
  return better === 'higher' ? value >= threshold : value <= threshold;
}

export function judged(measures: readonly Measure[]): Measure[] {
  return measures.filter(({ threshold }) => threshold !== undefined);
}
