// Types of the fields of time series, as InfluxDB has them.

export type FieldType = 'float' | 'integer' | 'unsigned' | 'string' | 'boolean';

/** Codes of types on disk and in the log. Never change a number. */
export const fieldTypeCodes: Readonly<Record<FieldType, number>> = {
  float: 0,
  integer: 1,
  unsigned: 2,
  string: 3,
  boolean: 4,
};

/** Types by code. */
export const fieldTypes: readonly FieldType[] = [
  'float',
  'integer',
  'unsigned',
  'string',
  'boolean',
];
