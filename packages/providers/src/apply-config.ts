import { isDeepStrictEqual } from 'node:util';
import { type Dialect, fieldName, NAMES, type Setting } from './dialect.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { modelOf, writeModelInBody, writeModelInPath } from './model-in-path.ts';
import type { Provider } from './provider.ts';

/**
 * Lays a grant's `config` over a call. The config wins over the holder's values.
 *
 * A generic name (`max_tokens`, `stop`, `n`…) moves to the place where the dialect keeps that setting, and every other
 * spelling of it is removed from the body. `model` goes into the path if the dialect names it there. Other names keep
 * their place: objects merge deeply, arrays and scalars replace. Without a dialect no name changes. A call without a
 * body stays without one.
 *
 * The arguments are not changed. Before it sends the call, the caller must match the returned path against the grant.
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
  // If the path names the model, the body may repeat it but not set it.
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
 * The setting as a layer over the body. Its value comes from the API's own name if the config has it, else from the
 * first generic one. Empty if the endpoint has no such setting.
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
 * Lays `over` on `base`: objects merge field by field, other values of `over` replace. Two spellings of one field are
 * one field. Neither argument is changed. The result shares their unchanged parts.
 *
 * The result is built from entries and not by assignment, so a field named `__proto__` stays an ordinary field.
 */
function overlay(dialect: Dialect | undefined, base: JsonObject, over: JsonObject): JsonObject {
  const result = new Map(Object.entries(base));
  for (const [name, value] of Object.entries(over)) {
    const merged = mergeInto(dialect, name, takeSpellings(dialect, result, name), value);
    result.set(name, merged);
  }
  return Object.fromEntries(result);
}

/** Removes a field under all its spellings, and returns their values. */
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

/**
 * The field of a config that would change a setting of a fixed config: the same setting under another name, at its place
 * within the body, in another spelling, or a field that overrides it. The fields that both have are not compared.
 * @returns undefined if the fixed config acts as it does alone, on every endpoint of the provider
 */
export function fieldOverFixed(
  provider: Provider,
  fixed: JsonObject,
  config: JsonObject,
): string | undefined {
  const dialects: readonly (Dialect | undefined)[] = [
    undefined,
    ...new Set(provider.routes.map((route) => route.dialect)),
  ];
  const alone = dialects.map((dialect) => ({ dialect, body: laid(dialect, fixed) }));
  const known = spellingsOf(dialects, fixed);
  const fields = Object.keys(config).filter((field) => !Object.hasOwn(fixed, field));
  return fields.find((field) => {
    const given = { [field]: config[field] };
    if (keysIn(given).some((key) => isOtherSpelling(known, key))) return true;
    if (GROUPS.some((names) => names.includes(field) && names.some((name) => Object.hasOwn(fixed, name))))
      return true;
    return alone.some(
      ({ dialect, body }) =>
        rivalsOf(dialect, fixed).has(fieldName(dialect, field)) ||
        // Whichever of two spellings comes last in a config wins.
        [
          { ...given, ...fixed },
          { ...fixed, ...given },
        ].some((config) => !covers(laid(dialect, config), body)),
    );
  });
}

const GROUPS: readonly (readonly string[])[] = Object.values(NAMES);

const laid = (dialect: Dialect | undefined, config: JsonObject): JsonObject =>
  applyConfig(dialect, config, { path: '', body: {} }).body;

/** The fields that would override the settings of a config. */
const rivalsOf = (dialect: Dialect | undefined, config: JsonObject): ReadonlySet<string> =>
  new Set(
    (dialect?.settings ?? [])
      .filter(({ at, names }) =>
        [...names, ...(at ? [at[0]] : [])].some((name) => Object.hasOwn(config, name)),
      )
      .flatMap(({ rivals }) => rivals ?? []),
  );

/** Whether an object has all of another, however deep. */
const covers = (whole: unknown, part: unknown): boolean =>
  isJsonObject(part)
    ? isJsonObject(whole) && Object.entries(part).every(([name, value]) => covers(whole[name], value))
    : isDeepStrictEqual(whole, part);

/** The names of a config's settings by their folded form: its own, and those that the dialects write for them. */
function spellingsOf(
  dialects: readonly (Dialect | undefined)[],
  fixed: JsonObject,
): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Set(dialects.flatMap((dialect) => [...keysIn(fixed), ...keysIn(laid(dialect, fixed))]));
  const byForm = new Map<string, Set<string>>();
  for (const name of names) byForm.set(folded(name), (byForm.get(folded(name)) ?? new Set()).add(name));
  return byForm;
}

/** Some readers of JSON ignore the case of names. */
function isOtherSpelling(known: ReadonlyMap<string, ReadonlySet<string>>, key: string): boolean {
  const names = known.get(folded(key));
  return names !== undefined && !names.has(key);
}

/** Normalization takes time that grows with the square of a text's length. No API has names as long as this. */
const FOLDED_MOST = 256;

function folded(name: string): string {
  const seen = name.replaceAll(/\s/g, '');
  if (seen.length > FOLDED_MOST) return seen;
  return seen.normalize('NFKC').replaceAll(/\s/g, '').toUpperCase().toLowerCase();
}

/** Every name in a value, at any depth. */
const keysIn = (value: unknown): string[] => {
  if (Array.isArray(value)) return value.flatMap(keysIn);
  return isJsonObject(value)
    ? Object.entries(value).flatMap(([name, inner]) => [name, ...keysIn(inner)])
    : [];
};
