import { type Dialect, fieldName } from '../dialect.ts';
import * as FACTS from '../facts/gemini.ts';
import { isJsonObject, type JsonObject } from '../json.ts';

/** They stay as they are. */
const CALLERS_OWN: ReadonlySet<string> = new Set(FACTS.CALLERS_OWN.names);

const PROTO: Dialect = { id: 'proto', settings: [], protoJson: { callersOwn: [] } };

/** The normalised form of a field's name: `generation_config` and `generationConfig` both become `generationConfig`. */
export const protoName = (name: string): string => fieldName(PROTO, name);

/**
 * A body in which each field has its normalised name. Fields that are null are removed: in protocol-buffer JSON null
 * means that the field is not set (https://protobuf.dev/programming-guides/json/#field-names).
 */
export function withProtoNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withProtoNames);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null)
      .map(([key, inner]) => {
        const name = protoName(key);
        return [name, CALLERS_OWN.has(name) ? inner : withProtoNames(inner)];
      }),
  );
}

/** A field that one object has under two names. The API reads one of them, and does not document which. */
export function namedTwice(value: unknown): string | undefined {
  if (Array.isArray(value)) return first(value.map(namedTwice));
  if (!isJsonObject(value)) return undefined;
  return (
    repeated(Object.keys(value).map(protoName)) ??
    first(
      Object.entries(value).map(([key, inner]) =>
        CALLERS_OWN.has(protoName(key)) ? undefined : namedTwice(inner),
      ),
    )
  );
}

/** The first name that a list contains twice. */
function repeated(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
}

/** A body with one field of an inner object set. All spellings of the object and of the field become one. */
export function withField(
  body: JsonObject,
  [outer, inner]: readonly [string, string],
  value: unknown,
): JsonObject {
  const held = Object.entries(body).filter(([key]) => protoName(key) === outer);
  const rest = Object.entries(body).filter(([key]) => protoName(key) !== outer);
  const kept = held
    .flatMap(([, object]) => (isJsonObject(object) ? Object.entries(object) : []))
    .filter(([key]) => protoName(key) !== inner);
  return Object.fromEntries([...rest, [outer, Object.fromEntries([...kept, [inner, value]])]]);
}

const first = (found: readonly (string | undefined)[]): string | undefined =>
  found.find((name) => name !== undefined);
