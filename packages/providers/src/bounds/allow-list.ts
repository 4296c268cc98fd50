import { isJsonObject, type JsonObject } from '../json.ts';
import type { Unbounded } from '../spend.ts';

/**
 * What a field does to the bound of its call.
 * - `harmless`: nothing that its bytes do not already say.
 * - `whole window`: it brings input that is not in the body, so all the model can read is taken for read.
 * - `unbounded`: it costs what nothing here can bound. `at` leads from the field to the place, if deeper.
 */
export type Effect = 'harmless' | 'whole window' | { readonly unbounded: string; readonly at?: string };

/** Judges a field by its value; the whole body is at hand for fields that depend on others. */
export type Rule = Effect | ((value: unknown, body: JsonObject) => Effect);

/** Every field that may stand in an object, and what it does. A field that is not in it is unbounded. */
export type AllowList = ReadonlyMap<string, Rule>;

/** Several lists as one; a later rule replaces an earlier one for the same field. */
export const allow = (...lists: readonly (AllowList | { readonly [field: string]: Rule })[]): AllowList =>
  new Map(lists.flatMap((list) => (list instanceof Map ? [...list] : Object.entries(list))));

/** A list of fields that are all harmless. */
export const harmless = (...fields: readonly string[]): AllowList =>
  new Map(fields.map((field) => [field, 'harmless']));

/** A field that may have these values only; null is taken for omitted, as these APIs do. */
export const only =
  (reason: string, ...values: readonly unknown[]): Rule =>
  (value) =>
    values.includes(value) ? 'harmless' : { unbounded: reason };

/** Fields of one object judged, each value of null taken for an omitted one. */
export function judge(list: AllowList, body: JsonObject): Effect {
  const effects = Object.entries(body).map(([field, value]) =>
    judgeField(list.get(field), field, value, body),
  );
  return worst(effects);
}

/** The effect of several things together. */
export const worst = (effects: readonly Effect[]): Effect =>
  effects.find((effect) => typeof effect === 'object') ??
  (effects.includes('whole window') ? 'whole window' : 'harmless');

/** An effect, as it is when found below a field or an index. */
export function below(place: string | number, effect: Effect): Effect {
  if (typeof effect === 'string') return effect;
  const step = typeof place === 'number' ? `[${place}]` : place;
  const rest = effect.at === undefined ? '' : effect.at.startsWith('[') ? effect.at : `.${effect.at}`;
  return { unbounded: effect.unbounded, at: step + rest };
}

/** An unbounded effect as a refusal that names the place. */
export const asUnbounded = ({ unbounded, at }: Exclude<Effect, string>): Unbounded => ({
  param: at ?? 'body',
  reason: unbounded,
});

/** Each object of a list judged; anything else in it is unbounded. */
export function judgeEach(value: unknown, judgeOne: (element: JsonObject) => Effect): Effect {
  if (!Array.isArray(value)) return { unbounded: 'is not a list' };
  return worst(
    value.map((element, index) =>
      below(index, isJsonObject(element) ? judgeOne(element) : { unbounded: 'is not an object' }),
    ),
  );
}

function judgeField(rule: Rule | undefined, field: string, value: unknown, body: JsonObject): Effect {
  if (rule === undefined) return { unbounded: 'what this field can cost is not known', at: field };
  if (value === null) return 'harmless';
  return below(field, typeof rule === 'function' ? rule(value, body) : rule);
}
