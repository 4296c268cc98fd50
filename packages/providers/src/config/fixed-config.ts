import { isDeepStrictEqual } from 'node:util';
import { type Dialect, fieldName, NAMES } from '../dialect.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { Provider } from '../provider.ts';
import { bodyOf, compileConfig, type Fields, isSetting, rivalsOf } from './compile-config.ts';

/**
 * The field of a config that would change a setting of a fixed config: the same setting under another name, at its place within the
 * body, in another spelling, or a field that overrides it. Fields in both configs are not compared. The time grows with the sum of the
 * lengths of both configs.
 * @returns undefined if the config changes no setting, on any endpoint of the provider
 */
export function fieldOverFixed(
  provider: Provider,
  fixed: JsonObject,
  config: JsonObject,
): string | undefined {
  const dialects = [undefined, ...new Set(provider.routes.map((route) => route.dialect))];
  const places = dialects.map((dialect) => placesOf(dialect, fixed));
  const spelt = namesByForm(fixed, places);
  const groups = new Set(Object.keys(fixed).flatMap((name) => GROUP_OF.get(name) ?? []));
  return Object.keys(config).find((field) => {
    if (Object.hasOwn(fixed, field)) return false;
    const given = { [field]: config[field] };
    return (
      namesIn(given).some((name) => isOtherSpelling(spelt, name)) ||
      groups.has(GROUP_OF.get(field) ?? '') ||
      places.some((place) => overrides(place, field, given))
    );
  });
}

/** The setting that each generic name means. */
const GROUP_OF: ReadonlyMap<string, string> = new Map(
  Object.entries(NAMES).flatMap(([group, names]) => names.map((name): [string, string] => [name, group])),
);

/** A fixed config in the places of one dialect. */
type Places = {
  readonly dialect: Dialect | undefined;
  readonly fields: Fields;
  readonly rivals: ReadonlySet<string>;
};

const placesOf = (dialect: Dialect | undefined, fixed: JsonObject): Places => ({
  dialect,
  fields: compileConfig(dialect, fixed).fields,
  rivals: rivalsOf(dialect, fixed),
});

/** Whether a field overrides a fixed setting, or moves to a place where the fixed config has another value. */
function overrides({ dialect, fields, rivals }: Places, field: string, given: JsonObject): boolean {
  const form = fieldName(dialect, field);
  if (rivals.has(form)) return true;
  // Most fields keep their place, and no fixed field has it.
  const stays = !fields.byForm.has(form) && !isSetting(dialect, form);
  return !stays && clash(fields, compileConfig(dialect, given).fields);
}

/** Whether some fields give a place another value than fixed ones. */
function clash(fixed: Fields, given: Fields): boolean {
  for (const [form, field] of given.byForm) {
    const at = fixed.byForm.get(form);
    if (at === undefined) continue;
    if (at.below && field.below ? clash(at.below, field.below) : !isDeepStrictEqual(at.value, field.value))
      return true;
  }
  return false;
}

/** The names of a config's settings by their folded form: its own, and those that the dialects write for them. */
function namesByForm(fixed: JsonObject, places: readonly Places[]): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Set([fixed, ...places.map(({ fields }) => bodyOf(fields))].flatMap(namesIn));
  const byForm = new Map<string, Set<string>>();
  for (const name of names) {
    const form = folded(name);
    byForm.set(form, (byForm.get(form) ?? new Set()).add(name));
  }
  return byForm;
}

/** Some readers of JSON ignore the case of names. */
function isOtherSpelling(known: ReadonlyMap<string, ReadonlySet<string>>, name: string): boolean {
  const names = known.get(folded(name));
  return names !== undefined && !names.has(name);
}

/** Normalization takes time that grows with the square of a text's length. No API has names as long as this. */
const FOLDED_MOST = 256;

function folded(name: string): string {
  const seen = name.replaceAll(/\s/g, '');
  if (seen.length > FOLDED_MOST) return seen;
  return seen.normalize('NFKC').replaceAll(/\s/g, '').toUpperCase().toLowerCase();
}

/** Every name in a value, at any depth. */
function namesIn(value: unknown): readonly string[] {
  const names: string[] = [];
  const walk = (inner: unknown): void => {
    if (Array.isArray(inner)) inner.forEach(walk);
    else if (isJsonObject(inner)) {
      for (const [name, deeper] of Object.entries(inner)) {
        names.push(name);
        walk(deeper);
      }
    }
  };
  walk(value);
  return names;
}
