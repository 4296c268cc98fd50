import { isJsonObject, type JsonObject } from '../json.ts';
import type { Bounded, CallFacts, DialectSpend, Unbounded } from '../spend.ts';
import { rewrittenShare } from './input-share.ts';

/** A place in a body, with a value where that is the name of a model or a kind. */
const NAME = /^[\w.[\]-]{1,40}$/;
/** Longer places are not read. */
const PLACE_LENGTH = 200;

/**
 * The name of a place for figures and settings: without indexes, and with its value if that names a model or a kind:
 * `messages[].clear_at`, `tools[].type=browser`. `other`: it is no name.
 */
export function nameOfPlace({ param: place = '' }: Partial<Unbounded>, body: JsonObject): string {
  if (place.length > PLACE_LENGTH) return 'other';
  const name = place.replaceAll(/\[\d+\]/g, '[]');
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

/**
 * Bounds a body without the parts that the operator has declared harmless, and only as far as nothing else is known of them: a part
 * that has a fee or no maximum is refused whatever is declared. Their bytes count, all of them.
 */
export function boundBeyond(
  declared: ReadonlySet<string>,
  boundBody: DialectSpend['boundBody'],
  body: JsonObject,
  call: CallFacts,
): Bounded {
  let [rest, facts] = [body, call];
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    const judged = boundBody(rest, facts);
    if (!('unbounded' in judged) || !judged.unbounded.isUnknown) return judged;
    const name = nameOfPlace(judged.unbounded, rest);
    if (!declared.has(name)) return judged;
    const [place = '', kind] = name.split('=');
    const found = { steps: place.split('.'), kinds: kindsAlong(judged.unbounded.param, rest), kind };
    const taken: unknown[] = [];
    rest = without(rest, found, taken) as JsonObject;
    if (taken.length === 0) return judged;
    // The provider may write them into the prompt in other words. A count would be of the rest alone.
    facts = { ...facts, bytes: facts.bytes + Math.max(0, rewrittenShare(taken).extra), count: undefined };
  }
  return { unbounded: TOO_MANY };
}

/** Each turn judges the body once, and takes away all parts of one name that are alike. */
const TURNS_MAX = 16;
const TOO_MANY: Unbounded = { param: 'body', reason: 'has too many fields that only the operator knows' };

/** The objects on the way to a place, by what APIs judge their fields by. */
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
 * @param taken gets what is left out
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
