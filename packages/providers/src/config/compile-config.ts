import { type Dialect, fieldName, type Setting } from '../dialect.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import { modelOf } from '../model-in-path.ts';

/** A config compiled for one dialect. It is built once, and calls do not modify it. */
export type CompiledConfig = {
  readonly dialect: Dialect | undefined;
  /** The model that goes into the path. Undefined if the config has none, or the dialect names it in the body. */
  readonly model: string | undefined;
  /** Top-level fields of a holder's body that are removed, each by the canonical form of its name. */
  readonly removed: ReadonlySet<string>;
  readonly fields: Fields;
};

/** The fields of an object of a config. */
export type Fields = {
  /** The dialect whose two spellings of a name are one field here. */
  readonly dialect: Dialect | undefined;
  /** By the one form of their names. */
  readonly byForm: ReadonlyMap<string, Field>;
};

/** A field of a config: a value that replaces the holder's, or an object whose fields do. */
type Field = {
  /** The name as it is sent. */
  readonly name: string;
  readonly value: unknown;
  /** Undefined if the value is no object. */
  readonly below: Fields | undefined;
};

/** Compiles a config. It takes time that grows with the config's length. */
export function compileConfig(dialect: Dialect | undefined, config: JsonObject): CompiledConfig {
  const given: Given = new Map(
    Object.entries(config).map(([name, value]) => [fieldName(dialect, name), value]),
  );
  const settings = touchedSettings(dialect, given);
  const taken = dialect ? settings.flatMap((setting) => spellings(dialect, setting)) : [];
  const rivals = settings.flatMap((setting) => setting.rivals ?? []);
  // If the path names the model, the body may repeat it but not set it.
  const elsewhere = new Set(dialect?.modelInPath ? [...taken, 'model'] : taken);
  const asGiven = Object.fromEntries(
    Object.entries(config).filter(([name]) => !elsewhere.has(fieldName(dialect, name))),
  );
  const layers = settings.flatMap((setting) => layerOf(dialect, setting, given));
  return {
    dialect,
    model: dialect?.modelInPath && modelOf(config),
    removed: new Set([...taken, ...rivals]),
    fields: compileFields(dialect, [...layers, asGiven]),
  };
}

/** The fields that override a config's settings in a holder's body. */
export const rivalsOf = (dialect: Dialect | undefined, config: JsonObject): ReadonlySet<string> =>
  new Set(
    (dialect?.settings ?? [])
      .filter(({ at, names }) =>
        [...names, ...(at ? [at[0]] : [])].some((name) => Object.hasOwn(config, name)),
      )
      .flatMap(({ rivals }) => rivals ?? []),
  );

/** A config as a body: the body of a holder who adds nothing. */
export const bodyOf = ({ byForm }: Fields): JsonObject =>
  Object.fromEntries(Array.from(byForm.values(), ({ name, value }) => [name, value]));

/** The values of a config by the one form of their names. */
type Given = ReadonlyMap<string, unknown>;

/** The settings that a config sets, in the order of the dialect. */
function touchedSettings(dialect: Dialect | undefined, given: Given): readonly Setting[] {
  if (!dialect) return [];
  const bySpelling = settingsBySpelling(dialect);
  const touched = new Set(Array.from(given.keys()).flatMap((name) => bySpelling.get(name) ?? []));
  return touched.size === 0 ? [] : dialect.settings.filter((setting) => touched.has(setting));
}

/** Whether a name means a setting of a dialect, which may have another place than its name says. */
export const isSetting = (dialect: Dialect | undefined, form: string): boolean =>
  dialect !== undefined && settingsBySpelling(dialect).has(form);

const BY_SPELLING = new WeakMap<Dialect, ReadonlyMap<string, readonly Setting[]>>();

function settingsBySpelling(dialect: Dialect): ReadonlyMap<string, readonly Setting[]> {
  const known = BY_SPELLING.get(dialect);
  if (known) return known;
  const made = new Map<string, Setting[]>();
  for (const setting of dialect.settings)
    for (const name of new Set(spellings(dialect, setting)))
      made.set(name, [...(made.get(name) ?? []), setting]);
  BY_SPELLING.set(dialect, made);
  return made;
}

/** Top-level spellings of a setting, the API's own first. */
function spellings(dialect: Dialect, { at, names }: Setting): string[] {
  const own = at?.length === 1 ? [at[0]] : [];
  return [...own, ...names].map((name) => fieldName(dialect, name));
}

/**
 * The setting as an object of a body. Its value comes from the API's own name if the config has it, else from the first
 * generic one. Empty if the endpoint has no such setting.
 */
function layerOf(dialect: Dialect | undefined, setting: Setting, given: Given): JsonObject[] {
  if (setting.at === undefined || dialect === undefined) return [];
  const held = given.get(spellings(dialect, setting).find((name) => given.has(name)) ?? '');
  const value = setting.list && typeof held === 'string' ? [held] : held;
  return [setting.at.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value)].filter(isJsonObject);
}

/** Merges several objects into one. Two spellings of a field are one field, objects merge, and of other values the last counts. */
function compileFields(dialect: Dialect | undefined, objects: readonly JsonObject[]): Fields {
  const byForm = new Map<string, Field>();
  for (const [form, { name, values }] of gather(dialect, objects))
    byForm.set(form, compileField(belowField(dialect, form), name, values));
  return { dialect, byForm };
}

function compileField(dialect: Dialect | undefined, name: string, values: readonly unknown[]): Field {
  const value = values.at(-1);
  if (!isJsonObject(value)) return { name, value, below: undefined };
  const below = compileFields(dialect, values.filter(isJsonObject));
  return { name, value: bodyOf(below), below };
}

/** A field's last spelling, and its values under all of them. */
type Gathered = { name: string; readonly values: unknown[] };

/** All fields of some objects, by the one form of their names. */
export function gather(
  dialect: Dialect | undefined,
  objects: readonly JsonObject[],
): ReadonlyMap<string, Gathered> {
  const byForm = new Map<string, Gathered>();
  for (const object of objects) {
    for (const [name, value] of Object.entries(object)) {
      const form = fieldName(dialect, name);
      const known = byForm.get(form);
      if (known) {
        known.name = name;
        known.values.push(value);
      } else byForm.set(form, { name, values: [value] });
    }
  }
  return byForm;
}

/** The dialect that names the fields below a field: none where the caller chooses the names. */
export const belowField = (dialect: Dialect | undefined, form: string): Dialect | undefined =>
  dialect?.protoJson?.callersOwn.includes(form) ? undefined : dialect;
