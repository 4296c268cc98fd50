import { isJsonObject, type JsonObject } from '../json.ts';
import type { Unbounded } from '../spend.ts';

/**
 * The effect of a field on the bound of its call.
 * - `harmless`: its bytes bound its cost.
 * - `whole window`: it brings input that is not in the body, so the input is the whole context window.
 * - `unbounded`: its cost has no bound, for the reason given. `at` leads from the field to a deeper place. `isUnknown`: no list has it.
 */
export type Effect =
  | 'harmless'
  | 'whole window'
  | { readonly unbounded: string; readonly at?: string; readonly isUnknown?: true };

/** Judges a field by its value, and by the whole body if it depends on other fields. */
export type Rule = Effect | ((value: unknown, body: JsonObject) => Effect);

/** The fields that an object may have, with their effects. Any other field is unbounded. */
export type AllowList = ReadonlyMap<string, Rule>;

/** Several lists as one; a later rule replaces an earlier one for the same field. */
export const allow = (...lists: readonly (AllowList | { readonly [field: string]: Rule })[]): AllowList =>
  new Map(lists.flatMap((list) => (list instanceof Map ? [...list] : Object.entries(list))));

/** A list of fields that are all harmless. */
export const harmless = (...fields: readonly string[]): AllowList =>
  new Map(fields.map((field) => [field, 'harmless']));

/** A field that may have only these values. Null means omitted, as in these APIs. */
export const only =
  (reason: string, ...values: readonly unknown[]): Rule =>
  (value) =>
    values.includes(value) ? 'harmless' : { unbounded: reason };

/** The effect of all fields of an object. A field that is null counts as omitted. */
export function judge(list: AllowList, body: JsonObject): Effect {
  let known: Effect = 'harmless';
  for (const field of Object.keys(body)) {
    known = worse(known, judgeField(list.get(field), field, body[field], body));
    if (typeof known === 'object') return known;
  }
  return known;
}

/** Judges a field whose value is an object of the fields of a list. */
export const judgeObject =
  (list: AllowList) =>
  (value: unknown): Effect =>
    isJsonObject(value) ? judge(list, value) : { unbounded: 'is not an object' };

/** The effect of two things together. */
export function worse(one: Effect, other: Effect): Effect {
  if (typeof one === 'object') return one;
  return other === 'harmless' ? one : other;
}

/** An effect that was found below a field or an index. */
export function below(place: string | number, effect: Effect): Effect {
  if (typeof effect === 'string') return effect;
  const step = typeof place === 'number' ? `[${place}]` : place;
  const rest = effect.at === undefined ? '' : effect.at.startsWith('[') ? effect.at : `.${effect.at}`;
  return { ...effect, at: step + rest };
}

/** An unbounded effect as a refusal that names the place. */
export const asUnbounded = ({ unbounded, at, isUnknown }: Exclude<Effect, string>): Unbounded => ({
  param: at ?? 'body',
  reason: unbounded,
  ...(isUnknown && { isUnknown }),
});

/** An unknown field or kind, by the place that names it. */
export const unknownEffect = (unbounded: string, at: string): Effect => ({ unbounded, at, isUnknown: true });

/** The effect of all objects of a list. Any other element is unbounded. */
export function judgeEach(value: unknown, judgeOne: (element: JsonObject) => Effect): Effect {
  if (!Array.isArray(value)) return { unbounded: 'is not a list' };
  let known: Effect = 'harmless';
  for (let index = 0; index < value.length; index++) {
    const element: unknown = value[index];
    const effect = isJsonObject(element) ? judgeOne(element) : NO_OBJECT;
    known = worse(known, below(index, effect));
    if (typeof known === 'object') return known;
  }
  return known;
}

const NO_OBJECT: Effect = { unbounded: 'is not an object' };

function judgeField(rule: Rule | undefined, field: string, value: unknown, body: JsonObject): Effect {
  if (rule === undefined) return unknownEffect('the cost of this field is not known', field);
  if (value === null) return 'harmless';
  return below(field, typeof rule === 'function' ? rule(value, body) : rule);
}
