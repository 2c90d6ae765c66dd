/** The configuration as the admin API shows and changes it. */
export interface ConfigView {
  list(): ConfigItem[];
  /** The error of a value for a setting that can change at run time, if any. */
  check(key: string, value: string): string | undefined;
  /** Changes a live setting at once. The value has been checked. */
  change(key: string, value: string): void;
}

export interface ConfigItem {
  key: string;
  /** The value; masked for a secret. */
  value: string | number;
  /** Origin of the value, as text for people. */
  source: string;
  live: boolean;
  secret: boolean;
  description: string;
}
