// Checks of JSON from outside: whether it has the shape that the program expects.

/** JSON of another shape; the message names the place. */
export class ShapeError extends Error {
  override readonly name = 'ShapeError';
}

/** Throws `ShapeError`. `place` is where the value stands, as `parts[0].files`. */
export type Check = (value: unknown, place: string) => void;

function wrong(place: string, what: string): never {
  throw new ShapeError(`${place} is not ${what}`);
}

export const anyText: Check = (value, place) => {
  if (typeof value !== 'string') wrong(place, 'a text');
};

export const flag: Check = (value, place) => {
  if (typeof value !== 'boolean') wrong(place, 'true or false');
};

export const finite: Check = (value, place) => {
  if (!Number.isFinite(value)) wrong(place, 'a number');
};

export const integer: Check = (value, place) => {
  if (!Number.isSafeInteger(value)) wrong(place, 'a whole number');
};

export const count: Check = (value, place) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) wrong(place, 'a whole number from 0');
};

/** A text that is as a whole as the pattern says. */
export function textLike(pattern: RegExp, what: string): Check {
  return (value, place) => {
    if (typeof value !== 'string' || !pattern.test(value)) wrong(place, what);
  };
}

export function oneOf(...values: readonly string[]): Check {
  return (value, place) => {
    if (!values.some((one) => one === value)) wrong(place, `one of ${values.join(', ')}`);
  };
}

export function optional(check: Check): Check {
  return (value, place) => {
    if (value !== undefined) check(value, place);
  };
}

export function listOf(check: Check): Check {
  return (value, place) => {
    if (!Array.isArray(value)) wrong(place, 'a list');
    for (const [i, item] of value.entries()) check(item, `${place}[${i}]`);
  };
}

/** Members that it does not name may be there: a later release adds some. */
export function objectOf(members: Readonly<Record<string, Check>>): Check {
  return (value, place) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      wrong(place, 'an object');
    }
    for (const [name, check] of Object.entries(members)) {
      const own = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
      check(own, `${place}.${name}`);
    }
  };
}
