import { fieldName } from '../dialect.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import { writeModelInBody, writeModelInPath } from '../model-in-path.ts';
import { belowField, type CompiledConfig, type Fields, gather } from './compile-config.ts';

/**
 * Applies a grant's `config` to a call. The config overrides the holder's values.
 *
 * A generic name (`max_tokens`, `stop`, `n`…) moves to the place where the dialect keeps that setting, and every other
 * spelling of it is removed from the body. `model` goes into the path if the dialect names it there. Other names keep
 * their place: objects merge deeply, arrays and scalars replace. Without a dialect no name changes. A call without a
 * body stays without one.
 *
 * The arguments are not changed, and the result shares their unchanged parts. It takes time that grows with the body
 * and with the config's own top level. Before it sends the call, the caller must match the returned path against the
 * grant.
 */
export function applyConfig(
  config: CompiledConfig,
  call: { path: string; body: JsonObject },
): { path: string; body: JsonObject };
export function applyConfig(
  config: CompiledConfig,
  call: { path: string; body: JsonObject | undefined },
): { path: string; body: JsonObject | undefined };
export function applyConfig(
  config: CompiledConfig,
  { path, body }: { path: string; body: JsonObject | undefined },
): { path: string; body: JsonObject | undefined } {
  const { dialect, model } = config;
  const place = dialect?.modelInPath;
  return {
    path: place === undefined || model === undefined ? path : writeModelInPath(place, model, path),
    body: body && applyToBody(config, body),
  };
}

function applyToBody({ dialect, model, removed, fields }: CompiledConfig, body: JsonObject): JsonObject {
  const held = dialect && model !== undefined ? writeModelInBody(dialect, model, body) : body;
  const kept: [string, unknown][] = [];
  const met = new Map<string, JsonObject[]>();
  for (const [name, value] of Object.entries(held)) {
    const form = fieldName(dialect, name);
    if (removed.has(form)) continue;
    if (fields.byForm.has(form)) meet(met, form, value);
    else kept.push([name, value]);
  }
  return laidOver(fields, kept, met);
}

/** Records an object of the holder with the name of an object in the config. The config replaces other values. */
function meet(met: Map<string, JsonObject[]>, form: string, value: unknown): void {
  if (!isJsonObject(value)) return;
  const known = met.get(form);
  if (known) known.push(value);
  else met.set(form, [value]);
}

/**
 * The holder's fields, and then those of the config. They become an object from entries and not by assignment, so a field
 * named `__proto__` stays an ordinary field.
 */
function laidOver(
  { byForm }: Fields,
  kept: [string, unknown][],
  met: ReadonlyMap<string, JsonObject[]>,
): JsonObject {
  for (const [form, { name, value, below }] of byForm) {
    const held = below && met.get(form);
    kept.push([name, held ? lay(below, held) : value]);
  }
  return Object.fromEntries(kept);
}

/** Applies the fields of a config to a holder's object. There may be several: the same object under several spellings. */
function lay(fields: Fields, held: readonly JsonObject[]): JsonObject {
  const kept: [string, unknown][] = [];
  const met = new Map<string, JsonObject[]>();
  for (const [form, { name, values }] of gather(fields.dialect, held)) {
    if (fields.byForm.has(form)) for (const value of values) meet(met, form, value);
    else kept.push([name, merged(belowField(fields.dialect, form), values)]);
  }
  return laidOver(fields, kept, met);
}

/** Merges the values that a holder gives one field under several spellings. Objects merge, and of other values the last counts. */
function merged(dialect: Fields['dialect'], values: readonly unknown[]): unknown {
  const value = values.at(-1);
  if (values.length === 1 || !isJsonObject(value)) return value;
  return lay({ dialect, byForm: new Map() }, values.filter(isJsonObject));
}
