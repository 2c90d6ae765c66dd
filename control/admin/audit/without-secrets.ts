// The body of a call without secrets: fields that the schema marks `writeOnly` are hidden.

export interface JsonSchema {
  readonly properties?: Readonly<Record<string, { readonly writeOnly?: boolean }>>;
}

const hiddenText = '[hidden]';
const mostNames = 50;
const longestValue = 500;

export function withoutSecrets(
  body: Readonly<Record<string, unknown>>,
  schema: JsonSchema | undefined,
  hidden: readonly string[],
): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body).slice(0, mostNames)) {
    const isSecret = schema?.properties?.[name]?.writeOnly === true || hidden.includes(name);
    kept[name] = isSecret ? hiddenText : shortened(value);
  }
  return kept;
}

function shortened(value: unknown): unknown {
  if (value === undefined) return undefined;
  const text = JSON.stringify(value);
  return text.length <= longestValue ? value : `${text.slice(0, longestValue)}…`;
}
