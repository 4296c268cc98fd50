import { type Dialect, fieldName, type Setting } from './dialect.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { modelOf, writeModelInBody, writeModelInPath } from './model-in-path.ts';

/**
 * Lays a grant's `config` over a call; it wins over whatever the holder sent.
 *
 * A generic name (`max_tokens`, `stop`, `n`…) is moved to where the dialect keeps that setting, and every other
 * spelling of it is removed from the body. `model` goes into the path where the dialect names it there. Other
 * names are laid over as given: objects merge deeply, arrays and scalars replace. Without a dialect nothing is
 * renamed. A call without a body gets none.
 *
 * Nothing passed in is changed. The path returned must be matched against the grant's: only then may it be sent.
 */
export function applyConfig(
  dialect: Dialect | undefined,
  config: JsonObject,
  call: { path: string; body: JsonObject },
): { path: string; body: JsonObject };
export function applyConfig(
  dialect: Dialect | undefined,
  config: JsonObject,
  call: { path: string; body: JsonObject | undefined },
): { path: string; body: JsonObject | undefined };
export function applyConfig(
  dialect: Dialect | undefined,
  config: JsonObject,
  { path, body }: { path: string; body: JsonObject | undefined },
): { path: string; body: JsonObject | undefined } {
  const place = dialect?.modelInPath;
  const model = place && modelOf(config);
  return {
    path: place === undefined || model === undefined ? path : writeModelInPath(place, model, path),
    body: body && applyToBody(dialect, config, model, body),
  };
}

type Given = ReadonlyMap<string, unknown>;

function applyToBody(
  dialect: Dialect | undefined,
  config: JsonObject,
  model: string | undefined,
  body: JsonObject,
): JsonObject {
  const given = byFieldName(dialect, config);
  const settings = touchedSettings(dialect, given);
  const taken = settings.flatMap((setting) => spellings(dialect, setting));
  const rivals = settings.flatMap((setting) => setting.rivals ?? []);
  // Where the path names the model, the body may repeat but never set it.
  const elsewhere = dialect?.modelInPath ? ['model'] : [];
  const asGiven = without(dialect, new Set([...taken, ...elsewhere]), config);
  const layers = [...settings.flatMap((setting) => layerOf(dialect, setting, given)), asGiven];
  const held = dialect && model !== undefined ? writeModelInBody(dialect, model, body) : body;
  const bare = without(dialect, new Set([...taken, ...rivals]), held);
  return layers.reduce((base, layer) => overlay(dialect, base, layer), bare);
}

const byFieldName = (dialect: Dialect | undefined, config: JsonObject): Given =>
  new Map(Object.entries(config).map(([name, value]) => [fieldName(dialect, name), value]));

const touchedSettings = (dialect: Dialect | undefined, given: Given): readonly Setting[] =>
  (dialect?.settings ?? []).filter((setting) => spellings(dialect, setting).some((name) => given.has(name)));

/**
 * The setting as a layer to lay over the body, its value taken from the API's own name if given, else from
 * the first generic one; none if the endpoint has no such setting.
 */
function layerOf(dialect: Dialect | undefined, setting: Setting, given: Given): JsonObject[] {
  if (setting.at === undefined) return [];
  const held = given.get(spellings(dialect, setting).find((name) => given.has(name)) ?? '');
  const value = setting.list && typeof held === 'string' ? [held] : held;
  return [setting.at.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value)].filter(isJsonObject);
}

/** Top-level spellings of a setting, the API's own first. */
function spellings(dialect: Dialect | undefined, { at, names }: Setting): string[] {
  const own = at?.length === 1 ? [at[0]] : [];
  return [...own, ...names].map((name) => fieldName(dialect, name));
}

const without = (dialect: Dialect | undefined, names: ReadonlySet<string>, object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(fieldName(dialect, name))));

/**
 * Lays `over` on `base`: objects are merged field by field, all else in `over` replaces. Two spellings of
 * one field are one field. Neither argument is changed; the result shares their untouched parts.
 *
 * Built from entries, never by assignment, so a field named `__proto__` stays an ordinary field.
 */
function overlay(dialect: Dialect | undefined, base: JsonObject, over: JsonObject): JsonObject {
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
