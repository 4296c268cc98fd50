import { isModest, parseJson } from '@presign/schema';
import type { Provider as ListedProvider, MatchLogic, ModelInfo } from '@pydantic/genai-prices';
import genaiPrices from '../../data/genai-prices.json' with { type: 'json' };
import liteLlm from '../../data/lite-llm.json' with { type: 'json' };
import { isJsonObject, type JsonObject } from '../json.ts';
import { LIST_MAX_BYTES, ListError, type Listed, listId, type Origin, TOO_LARGE } from '../kept/listed.ts';
import { BUILT_IN_PROVIDERS } from '../vendors.ts';
import { liteLlmModel } from './lite-llm.ts';

export type { ListedProvider };

/** A price list, reduced to the providers that Presign knows. */
export type PriceList = Listed & {
  /** By the name in `priceList` of a provider. Each also has the models of the providers that it falls back to. */
  readonly providers: ReadonlyMap<string, ListedProvider>;
};

/** The names that lists have for the built-in providers. */
const LISTED_NAMES: ReadonlySet<string> = new Set(
  [...BUILT_IN_PROVIDERS.values()].flatMap(({ priceList }) => priceList ?? []),
);

/** The first list that ships with Presign: that of genai-prices (`generate/bundled-list.ts`), with the day of its release. */
export const BUNDLED_LIST: PriceList = {
  id: genaiPrices.version,
  source: 'bundled',
  date: genaiPrices.date,
  providers: readGenaiPrices(genaiPrices.providers),
};

/** The second one: LiteLLM's, which has models that the first lacks. */
export const BUNDLED_LITE_LLM: PriceList = {
  id: `litellm ${liteLlm.version}`,
  source: 'bundled',
  date: liteLlm.date,
  providers: readGenaiPrices(liteLlm.providers),
};

/** Keeps the providers that Presign knows, each with the models that it falls back to. */
function knownProviders(
  find: (name: string) => ListedProvider | undefined,
): ReadonlyMap<string, ListedProvider> {
  const found = [...LISTED_NAMES].flatMap((name) => find(name) ?? []);
  return new Map(
    found.map(({ fallback_model_providers: others = [], ...provider }) => {
      const models: ModelInfo[] = [provider, ...others.flatMap((name) => find(name) ?? [])].flatMap(
        (each) => each.models,
      );
      return [provider.id, { ...provider, models }];
    }),
  );
}

const MODEST = { depth: 30, parts: 600_000 };
/** OpenRouter has 700. Finding a model takes time that grows with their number. */
const MOST_MODELS = 3_000;

/**
 * Reads a list in the format of genai-prices' data.json or of LiteLLM's model_prices_and_context_window.json.
 * @throws ListError when the text is neither, or too large
 */
export function readPriceList(text: string, origin: Origin): PriceList {
  const bytes = Buffer.from(text);
  if (bytes.length > LIST_MAX_BYTES) throw new ListError(TOO_LARGE);
  const parsed = isModest(bytes, MODEST) ? parseJson(text) : undefined;
  if (typeof parsed !== 'object' || parsed === null) throw new ListError('is not a JSON list of models');
  const providers = Array.isArray(parsed) ? readGenaiPrices(parsed) : readLiteLlm(parsed as JsonObject);
  if (providers.size === 0) throw new ListError('has no price of a known provider');
  if ([...providers.values()].some(({ models }) => models.length > MOST_MODELS)) {
    throw new ListError(`has over ${MOST_MODELS} models of one provider`);
  }
  return { ...origin, id: listId(text), providers };
}

function readGenaiPrices(list: readonly unknown[]): PriceList['providers'] {
  const providers = new Map(
    list.flatMap((each) => {
      if (!isJsonObject(each) || typeof each.id !== 'string' || !Array.isArray(each.models)) return [];
      const { id, fallback_model_providers: others } = each;
      const models = each.models.filter(isModel);
      const fallback = Array.isArray(others) && { fallback_model_providers: others.map(String) };
      const provider: ListedProvider = { id, name: id, api_pattern: '', models, ...fallback };
      return models.length === 0 ? [] : [[id, provider] as const];
    }),
  );
  return knownProviders((name) => providers.get(name));
}

/** Whether an entry names a model in a way that is quick to look up. Its prices are checked when they are used. */
function isModel(model: unknown): model is ModelInfo {
  if (!isJsonObject(model) || typeof model.id !== 'string' || !isMatch(model.match)) return false;
  const { prices, context_window: window } = model;
  if (window !== undefined && !Number.isSafeInteger(window)) return false;
  return Array.isArray(prices) ? prices.length > 0 && prices.every(isJsonObject) : isJsonObject(prices);
}

function isMatch(match: unknown): match is MatchLogic {
  if (!isJsonObject(match)) return false;
  const [[clause, value] = ['', undefined], ...more] = Object.entries(match);
  if (more.length > 0) return false;
  if (clause === 'or' || clause === 'and') return Array.isArray(value) && value.every(isMatch);
  if (typeof value !== 'string') return false;
  if (clause === 'regex') return isQuick(value);
  return ['equals', 'starts_with', 'ends_with', 'contains'].includes(clause);
}

/**
 * Whether an expression takes at most quadratic time: it repeats no group, has at most one repetition without a bound, and
 * has no back reference. Holders choose the model names that it runs on.
 */
function isQuick(expression: string): boolean {
  const plain = expression.replace(/\\./gs, (escaped) => (/[1-9k]/.test(escaped) ? '\\1' : '_'));
  const unbounded = plain.match(/[*+]|\{\d+,\}/g) ?? [];
  if (expression.length > 200 || unbounded.length > 1 || /\)[*+?{]|\\1/.test(plain)) return false;
  try {
    new RegExp(expression);
    return true;
  } catch {
    return false;
  }
}

function readLiteLlm(list: JsonObject): PriceList['providers'] {
  const vendors = [...BUILT_IN_PROVIDERS.values()].flatMap(
    ({ priceList: id, liteLlm, liteLlmModels, rules }) => {
      const models = new Map<string, ModelInfo>();
      const { feePerRequest } = rules;
      return id === undefined
        ? []
        : [{ id, names: liteLlm ?? [id], only: liteLlmModels, feePerRequest, models }];
    },
  );
  const byName = new Map(vendors.flatMap((vendor) => vendor.names.map((name) => [name, vendor] as const)));
  for (const [key, entry] of Object.entries(list)) {
    const vendor = isJsonObject(entry) ? byName.get(String(entry.litellm_provider)) : undefined;
    const model = vendor && liteLlmModel(key, entry as JsonObject, vendor);
    // The list has some models twice, with and without the name of their provider.
    if (model && weight(model) >= weight(vendor.models.get(model.id))) vendor.models.set(model.id, model);
  }
  const read = vendors.map(({ id, models }) => {
    const provider: ListedProvider = { id, name: id, api_pattern: '', models: [...models.values()] };
    return [id, provider] as const;
  });
  return new Map(read.filter(([, { models }]) => models.length > 0));
}

/** Larger for the more expensive of two entries. */
const weight = (model: ModelInfo | undefined): number =>
  Object.values(model?.prices ?? {}).reduce(
    (sum, rate) => sum + (typeof rate === 'number' ? rate : Number(rate?.base ?? 0)),
    0,
  );
