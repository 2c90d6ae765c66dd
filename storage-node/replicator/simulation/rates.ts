// How often the faults of a history come.

/** Probabilities by 100 ms. */
export interface Rates {
  crash: number;
  pause: number;
  partition: number;
  members: number;
  links: number;
  loneliness: number;
  lostEnds: number;
}

export const noRates: Rates = {
  ...{ crash: 0, pause: 0, partition: 0, members: 0, links: 0, loneliness: 0, lostEnds: 0 },
};
