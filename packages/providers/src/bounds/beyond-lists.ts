import { isJsonObject, type JsonObject } from '../json.ts';
import type { Bound, Bounded, CallFacts, DialectSpend, Unbounded, Usage } from '../spend.ts';
import type { Declared, DeclaredPlaces } from './declared.ts';
import { rewrittenShare } from './input-share.ts';

/** A place in a body, with a value where that is the name of a model or a kind. */
const NAME = /^[\w.[\]-]{1,40}$/;
/** Longer places are not read. */
export const PLACE_LENGTH = 200;

/**
 * The name of a place for metrics and settings. It has no indexes, and has the value if that names a model or a kind:
 * `messages[].clear_at`, `tools[].type=browser`. `other`: it is not a valid name.
 */
export function nameOfPlace({ param: place = '', beta }: Partial<Unbounded>, body: JsonObject): string {
  if (place.length > PLACE_LENGTH) return 'other';
  const name = place.replaceAll(/\[\d+\]/g, '[]');
  if (beta !== undefined) return `${name}=${beta}`;
  if (!NAME.test(name)) return 'other';
  if (!/(?:^|\.)(?:model|type)$/.test(name)) return name;
  const value = place
    .split(/[.[\]]+/)
    .filter((step) => step !== '')
    .reduce<unknown>((at, step) => (at as JsonObject | undefined)?.[step], body);
  return typeof value === 'string' && NAME.test(value) ? `${name}=${value}` : name;
}

/** A field, or the kind of an object, that an operator may declare harmless (`nameOfPlace`). */
export const HARMLESS_NAME = /^[\w-]+(?:\[\])?(?:\.[\w-]+(?:\[\])?)*(?:(?<=(?:^|\.)type)=[\w.-]+)?$/;

/** Declared places, ready for calls. */
export type CompiledPlaces = {
  readonly places: DeclaredPlaces;
  readonly refused: readonly (Pick<Found, 'steps' | 'kind'> & { readonly unbounded: Unbounded })[];
};

/** Compiles declared places, once for all calls of a provider. */
export const compilePlaces = (places: DeclaredPlaces = new Map()): CompiledPlaces => ({
  places,
  refused: [...places].flatMap(([name, declared]) =>
    declared.effect === 'refused'
      ? [{ ...pathOf(name), unbounded: { param: name, reason: declared.reason } }]
      : [],
  ),
});

/** The fields that lead to a place, and the kind of the object there if its name has one. */
function pathOf(name: string): Pick<Found, 'steps' | 'kind'> {
  const [place = '', kind] = name.split('=');
  return { steps: place.split('.'), kind };
}

/**
 * Bounds a body without its declared parts. A part with a fee or without a maximum that this version knows is refused, whatever is
 * declared. Declared parts count with all their bytes and with their declared effect.
 */
export function boundBeyond(
  { places, refused }: CompiledPlaces,
  boundBody: DialectSpend['boundBody'],
  body: JsonObject,
  call: CallFacts,
): Bounded {
  const one = refused.find(({ steps, kind }) => hasPlace(body, steps, kind));
  if (one) return { unbounded: one.unbounded };
  let [rest, facts, added] = [body, call, NOTHING_ADDED];
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    const judged = boundBody(rest, facts);
    if (!('unbounded' in judged)) return turn === 0 ? judged : { bound: withAdded(judged.bound, added) };
    if (!judged.unbounded.isUnknown) return judged;
    const name = nameOfPlace(judged.unbounded, rest);
    const declared = places.get(name);
    if (!declared) return judged;
    const found = { ...pathOf(name), kinds: kindsAlong(judged.unbounded.param, rest) };
    const taken: unknown[] = [];
    rest = without(rest, found, taken) as JsonObject;
    if (taken.length === 0) return judged;
    added = withFees(added, declared, taken.length);
    const bytes = declared.effect === 'harmless' ? facts.bytes : FILLS_ANY_WINDOW;
    // The provider may write them into the prompt in another form, and a token count would cover only the rest.
    facts = { ...facts, bytes: bytes + Math.max(0, rewrittenShare(taken).extra), saved: undefined };
  }
  return { unbounded: TOO_MANY };
}

/** More tokens than any window has, and few enough that sums stay exact. */
export const FILLS_ANY_WINDOW = 2 ** 51;

/** The fees of declared parts, and how often the model runs because of them. */
type Added = { readonly fees: Usage; readonly runs: number };

const NOTHING_ADDED: Added = { fees: {}, runs: 0 };

function withFees(added: Added, declared: Declared, times: number): Added {
  if (declared.effect !== 'fee') return added;
  const { unit, most, runs } = declared;
  const fees = { ...added.fees, [unit]: (added.fees[unit] ?? 0) + most * times };
  return { fees, runs: added.runs + runs * times };
}

/** Each run reads the whole input again, and writes as much as the first. A declared part may request a longer cache. */
function withAdded({ isShortCache: _, ...bound }: Bound, { fees, runs }: Added): Bound {
  const { leastInput: __, ...rest } = bound;
  const all = { ...bound.fees };
  for (const [unit, most] of Object.entries(fees)) all[unit] = (all[unit] ?? 0) + most;
  if (runs === 0) return { ...bound, fees: all };
  const { inputTokens, output } = bound;
  const times = 1 + runs;
  return {
    ...rest,
    fees: all,
    inputTokens: inputTokens * times,
    output: output && { ...output, times: output.times * times },
  };
}

/**
 * Whether a body has a field at the end of a path of fields, with this value if one is given. Some APIs read several spellings of a name,
 * or one element in the place of a list, so those count, too.
 */
function hasPlace(
  value: unknown,
  [step = '', ...later]: readonly string[],
  kind: string | undefined,
): boolean {
  if (!isJsonObject(value)) return false;
  const field = spelling(step.replace('[]', ''));
  for (const [name, found] of Object.entries(value)) {
    if (spelling(name) !== field || found === null) continue;
    const each: readonly unknown[] = Array.isArray(found) ? found : [found];
    if (later.length > 0 && each.some((inner) => hasPlace(inner, later, kind))) return true;
    if (later.length === 0 && (kind === undefined || each.includes(kind))) return true;
  }
  return false;
}

const spelling = (name: string): string => name.replaceAll('_', '').toLowerCase();

/** Each turn judges the body once, and removes all equal parts of one name. */
const TURNS_MAX = 16;
const TOO_MANY: Unbounded = { param: 'body', reason: 'has too many fields that no list of this version has' };

/** The objects on the path to a place, by the properties that APIs use to judge their fields. */
function kindsAlong(place: string, body: JsonObject): readonly string[] {
  const kinds: string[] = [];
  let at: unknown = body;
  for (const step of place.split(/[.[\]]+/).filter((each) => each !== '')) {
    if (isJsonObject(at)) kinds.push(kindOf(at));
    at = (at as JsonObject | undefined)?.[step];
  }
  return kinds;
}

const kindOf = ({ type, role }: JsonObject): string => JSON.stringify([type, role]);

/** A field at the end of a path of fields (`messages[]`, `clear_at`) through objects of these kinds, or the object that has it as a value. */
type Found = {
  readonly steps: readonly string[];
  readonly kinds: readonly string[];
  readonly kind: string | undefined;
};

/**
 * A copy without all places like one that was found.
 * @param taken gets the removed parts
 */
function without(value: unknown, { steps, kinds, kind }: Found, taken: unknown[]): unknown {
  const [step = '', ...later] = steps;
  const field = step.replace('[]', '');
  if (!isJsonObject(value) || !Object.hasOwn(value, field) || kindOf(value) !== kinds[0]) return value;
  const { [field]: found, ...others } = value;
  if (later.length === 0) {
    taken.push(found);
    return others;
  }
  const endsInKind = kind !== undefined && later.length === 1;
  const isOfKind = (each: unknown) => endsInKind && isJsonObject(each) && each.type === kind;
  const inner = (each: unknown) => without(each, { steps: later, kinds: kinds.slice(1), kind }, taken);
  if (!step.endsWith('[]')) {
    if (!isOfKind(found)) return { ...value, [field]: inner(found) };
    taken.push(found);
    return others;
  }
  if (!Array.isArray(found)) return value;
  const left: unknown[] = [];
  for (const each of found) {
    if (isOfKind(each)) taken.push(each);
    else left.push(endsInKind ? each : inner(each));
  }
  return { ...value, [field]: left };
}
