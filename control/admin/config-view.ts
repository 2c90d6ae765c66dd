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
  /** Hidden when it is a secret. */
  value: string | number;
  /** Where the value came from, for people. */
  source: string;
  live: boolean;
  secret: boolean;
  description: string;
}
