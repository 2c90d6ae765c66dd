// Result of each member of the ensemble.

export interface MemberForecast {
  /** The model's value for each hour it was fitted to. */
  fitted: Float64Array;
  /** For each hour after that. */
  forecast: Float64Array;
}
