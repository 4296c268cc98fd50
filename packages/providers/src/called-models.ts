import { isDeepStrictEqual } from 'node:util';
import { briefly } from '@presign/schema';
import { applyConfig } from './config/apply-config.ts';
import { compileConfig } from './config/compile-config.ts';
import { costsNothing, dialectOf } from './dialect-of.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { resourceName, segmentModel, writeModelInBody } from './model-in-path.ts';
import type { Provider } from './provider.ts';
import { BUILT_IN_PROVIDERS } from './vendors.ts';

/** A call as it will be sent. */
type SentCall = {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** Undefined if the call has none. */
  readonly body: JsonObject | undefined;
};

/** The part of a call that may use another model, and the reason as the end of a sentence. `model`: the other model, if it is the call's own. */
type StrayModel = { readonly param: string; readonly reason: string; readonly model?: string };

/** Fields of a body that choose a model next to `model`, or in its place. A reseller may accept those of any vendor. */
const CHOOSERS: readonly string[] = [
  ...new Set([...BUILT_IN_PROVIDERS.values()].flatMap(({ modelFields = [] }) => modelFields)),
];

/** The fields that `strayModel` reads from a body. Another spelling of them must not pass. */
export const MODEL_FIELDS: readonly string[] = ['model', 'tools', ...CHOOSERS];

/**
 * Whether a call can use only these models. A call that does not say which model it uses may use another one, so it is refused.
 * @returns the part at fault, or undefined if the call uses no other model
 */
export function strayModel(
  provider: Provider,
  { method, path, query, body = {} }: SentCall,
  models: { readonly has: (name: string) => boolean },
): StrayModel | undefined {
  const isOne = (name: unknown) => typeof name === 'string' && models.has(name);
  const inQuery = [...new URLSearchParams(query).keys()].find((name) => /^\s*models?\s*$/i.test(name));
  if (inQuery !== undefined) return { param: 'model', reason: 'must not be in the query' };
  const dialect = dialectOf(provider, path);
  if (dialect === undefined) {
    const isFree = costsNothing(provider, method, path) && !MODEL_FIELDS.some((name) => name in body);
    return isFree ? undefined : { param: 'path', reason: 'is not known to name its model' };
  }
  const place = dialect.modelInPath;
  const model = place ? segmentModel(place, path) : body.model;
  if (model === undefined) return { param: 'model', reason: 'is not named' };
  if (!isOne(model)) {
    if (typeof model !== 'string') return { param: 'model', reason: 'is not allowed' };
    return { param: 'model', reason: `${briefly(model)} is not allowed`, model };
  }
  if (place && typeof model === 'string') {
    const repeats = [undefined, model, resourceName(place.collections, model)];
    if (
      !repeats.includes(body.model as string) ||
      !isDeepStrictEqual(writeModelInBody(dialect, model, body), body)
    )
      return { param: 'model', reason: "must be the path's model" };
  }
  return chosenIn(body, isOne);
}

/**
 * Why no call on a path of a URL could use only these models. Undefined if a call could, as on every pattern.
 * @param config the fields that replace those of the holder
 */
export function strayPath(
  provider: Provider,
  { method, path, config }: { readonly method: string; readonly path: string; readonly config: JsonObject },
  models: readonly string[],
): StrayModel | undefined {
  if (path.includes('*')) return undefined;
  const dialect = dialectOf(provider, path);
  const body = dialect?.modelInPath ? {} : { model: models[0] };
  const call = dialect
    ? applyConfig(compileConfig(dialect, config), { path, body })
    : { path, body: undefined };
  return strayModel(provider, { ...call, method, query: '' }, new Set(models));
}

type IsOne = (name: unknown) => boolean;

/** Another model that a body chooses. */
function chosenIn(body: JsonObject, isOne: IsOne): StrayModel | undefined {
  for (const field of CHOOSERS) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (field === 'models' && Array.isArray(value) && value.every(isOne)) continue;
    if (field === 'prompt' && !isJsonObject(value)) continue;
    return { param: field, reason: 'may choose another model' };
  }
  const { metadata: _, ...others } = body;
  for (const [field, value] of Object.entries(others)) {
    const parts = field === 'tools' && Array.isArray(value) ? value.flatMap(withMembers) : [value];
    if (parts.some((part) => isJsonObject(part) && typeof part.model === 'string' && !isOne(part.model)))
      return { param: field, reason: 'chooses another model' };
  }
  return undefined;
}

/** A tool, and the objects in it: `{"type": "image_generation", "model"}`, `{"type", "parameters": {"model"}}`. */
const withMembers = (tool: unknown): unknown[] =>
  isJsonObject(tool) ? [tool, ...Object.values(tool)] : [tool];
