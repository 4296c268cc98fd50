import { type Dialect, fieldName, isJsonObject, type JsonObject } from './dialect.ts';

/**
 * Lays `over` on `base`: objects are merged field by field, all else in `over` replaces. Two spellings of
 * one field are one field. Neither argument is changed; the result shares their untouched parts.
 *
 * Built from entries, never by assignment, so a field named `__proto__` stays an ordinary field.
 */
export function overlay(dialect: Dialect | undefined, base: JsonObject, over: JsonObject): JsonObject {
  const result = new Map(Object.entries(base));
  for (const [name, value] of Object.entries(over)) {
    const merged = mergeInto(dialect, name, takeSpellings(dialect, result, name), value);
    result.set(name, merged);
  }
  return Object.fromEntries(result);
}

/** Removes a field under all its spellings and tells what they held. */
function takeSpellings(dialect: Dialect | undefined, fields: Map<string, unknown>, name: string): unknown[] {
  const wanted = fieldName(dialect, name);
  const spellings =
    dialect?.protoJson === undefined
      ? [name]
      : [...fields.keys()].filter((key) => fieldName(dialect, key) === wanted);
  return spellings.map((spelling) => {
    const value = fields.get(spelling);
    fields.delete(spelling);
    return value;
  });
}

function mergeInto(dialect: Dialect | undefined, name: string, held: unknown[], value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const below = dialect?.protoJson?.callersOwn.includes(fieldName(dialect, name)) ? undefined : dialect;
  return [...held.filter(isJsonObject), value].reduce<JsonObject>(
    (base, over) => overlay(below, base, over),
    {},
  );
}
