// The kinds of setting there are. A setting is data: flags, environment variables, the file, CONFIG GET
// and the documentation are all made from it.

interface Described {
  description: string;
  /** Unit of a number, as 'ms' or 'seconds'. */
  unit?: string;
  /** Never shown; may be given as the name of a file that holds it. */
  secret?: true;
  /** Can be changed while the server runs. */
  live?: true;
}

interface IntegerSetting extends Described {
  type: 'integer';
  default: number;
  min: number;
  max: number;
}

/** Bytes. People may write 512mb, 64KiB or 1g. */
interface SizeSetting extends Described {
  type: 'size';
  default: number;
  min: number;
  max: number;
}

interface TextSetting extends Described {
  type: 'text';
  default: string;
  /** Placeholder of the text in the help: 'path', 'host'. */
  meaning: string;
}

interface ChoiceSetting extends Described {
  type: 'choice';
  default: string;
  choices: readonly string[];
}

export type Setting = IntegerSetting | SizeSetting | TextSetting | ChoiceSetting;

export type ValueOf<S extends Setting> = S extends { type: 'integer' | 'size' }
  ? number
  : S extends { type: 'choice'; choices: readonly (infer C)[] }
    ? C
    : string;

const multiples: Record<string, number> = {
  '': 1,
  b: 1,
  k: 1000,
  kb: 1024,
  kib: 1024,
  m: 1000 ** 2,
  mb: 1024 ** 2,
  mib: 1024 ** 2,
  g: 1000 ** 3,
  gb: 1024 ** 3,
  gib: 1024 ** 3,
};

/** Bytes in Redis's notation (`1k` is 1000, `1kb` is 1024; KiB as well), or NaN. */
export function parseSize(text: string): number {
  const match = /^(\d{1,16})([a-z]*)$/i.exec(text.trim());
  if (!match) return NaN;
  const value = Number(match[1]) * (multiples[match[2]!.toLowerCase()] ?? NaN);
  return Number.isSafeInteger(value) ? value : NaN;
}

/** A size as people write it, when it is a round one. */
export function formatSize(bytes: number): string {
  for (const unit of ['gb', 'mb', 'kb']) {
    const multiple = multiples[unit]!;
    if (bytes >= multiple && bytes % multiple === 0) return `${bytes / multiple}${unit}`;
  }
  return String(bytes);
}

/** Valid values of a setting, for messages and the documentation. */
export function allowed(setting: Setting): string {
  switch (setting.type) {
    case 'integer':
      return `a whole number from ${setting.min} to ${setting.max}`;
    case 'size':
      return `a size from ${formatSize(setting.min)} to ${formatSize(setting.max)}, as 67108864 or 64mb`;
    case 'choice':
      return `one of ${setting.choices.join(', ')}`;
    case 'text':
      return setting.meaning;
  }
}

/** The value a text stands for, or undefined when it is not one. */
export function parseValue(setting: Setting, text: string): string | number | undefined {
  switch (setting.type) {
    case 'integer': {
      const value = /^-?\d{1,16}$/.test(text.trim()) ? Number(text) : NaN;
      return value >= setting.min && value <= setting.max ? value : undefined;
    }
    case 'size': {
      const value = parseSize(text);
      return value >= setting.min && value <= setting.max ? value : undefined;
    }
    case 'choice':
      return setting.choices.includes(text) ? text : undefined;
    case 'text':
      return text;
  }
}
