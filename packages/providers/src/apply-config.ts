import { type Dialect, fieldName, isJsonObject, type JsonObject, type Setting } from './dialect.ts';
import { writeModelInBody, writeModelInPath } from './model-in-path.ts';
import { overlay } from './overlay.ts';

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

/** The model a config sets; undefined if none, or if it is no name. */
export function modelOf(config: JsonObject): string | undefined {
  const model = Object.hasOwn(config, 'model') ? config.model : undefined;
  return typeof model === 'string' ? model : undefined;
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
