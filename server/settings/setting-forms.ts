// Forms that several settings have.

export const anyPort = { type: 'integer', min: 0, max: 65535 } as const;
export const anySize = { type: 'size', min: 0, max: Number.MAX_SAFE_INTEGER } as const;
export const seconds = { type: 'integer', min: 0, max: 2147483647, unit: 'seconds' } as const;
export const count = { type: 'integer', min: 0, max: Number.MAX_SAFE_INTEGER } as const;
export const onOff = { type: 'choice', choices: ['off', 'on'], default: 'off' } as const;
export const liveSwitch = {
  type: 'choice',
  choices: ['on', 'off'],
  default: 'on',
  live: true,
} as const;
export const waitMs = { type: 'integer', min: 0, max: 600_000, unit: 'ms', live: true } as const;
export const file = { type: 'text', meaning: 'a path of a PEM file', default: '' } as const;
export const host = { type: 'text', meaning: 'a host name or address' } as const;

export const kib = 1024;
export const mib = 1024 * kib;
export const gib = 1024 * mib;
