import type { ModelPrice as ListedRates, ModelInfo } from '@pydantic/genai-prices';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { VendorRules } from '../vendor-rules.ts';

/**
 * A model of LiteLLM's list (its schema is model_prices_and_context_window.schema.json in github.com/BerriAI/litellm), in the form of
 * genai-prices. LiteLLM writes dollars for each token. It writes 0 where it knows no price, so a rate of 0 is missing.
 * @param vendor what the list calls the provider (`names`: the `litellm_provider` of its models, and the prefix of their names), the
 * models that are taken from it, and those of which each call has a fee
 * @returns undefined for a model without a price per token, or with a unit that such a price does not cover
 */
export function liteLlmModel(
  key: string,
  entry: JsonObject,
  { names, only, feePerRequest }: ListedVendor,
): ModelInfo | undefined {
  const { mode = 'chat', aliases = [] } = entry;
  if (!MODES.has(String(mode))) return undefined;
  if (Object.entries(entry).some(([field, dollars]) => OTHER_UNIT.test(field) && Number(dollars) > 0))
    return undefined;
  const bare = (name: string) =>
    name.slice(names.find((each) => name.startsWith(`${each}/`))?.concat('/').length ?? 0);
  const id = bare(key);
  const isTaken = (name: string) => name !== '' && only?.test(name) !== false;
  const given = Array.isArray(aliases) ? aliases.filter((alias) => typeof alias === 'string') : [];
  const also = given.map(bare).filter(isTaken);
  const prices = { ...tokenRates(entry), ...fees(entry, feePerRequest?.(id) ?? false, mode) };
  if (!isTaken(id) || Object.keys(prices).length === 0) return undefined;
  const window = contextWindow(entry);
  const match = { or: [id, ...also].map((name) => ({ equals: name })) };
  return { id, match, prices, ...(window !== undefined && { context_window: window }) };
}

type ListedVendor = {
  readonly feePerRequest: VendorRules['feePerRequest'] | undefined;
  readonly names: readonly string[];
  readonly only: RegExp | undefined;
};

/** Modes whose calls Presign bounds by tokens. */
const MODES: ReadonlySet<string> = new Set(['chat', 'completion', 'responses', 'embedding', 'rerank']);

/** If a model is also billed for each image, character or second, a call costs more than its tokens. */
const OTHER_UNIT = /_cost_per_(?:image|character|pixel|second|(?:audio|video)_per_second)(?!_token)/;

/** Fields of dollars for each token, by the unit they price. */
const TOKEN_FIELDS = [
  ['input_mtok', 'input_cost_per_token'],
  ['output_mtok', 'output_cost_per_token'],
  ['cache_read_mtok', 'cache_read_input_token_cost'],
  ['cache_read_mtok', 'input_cost_per_token_cache_hit'],
  ['cache_write_mtok', 'cache_creation_input_token_cost'],
  ['cache_write_1h_mtok', 'cache_creation_input_token_cost_above_1hr'],
  ['input_audio_mtok', 'input_cost_per_audio_token'],
  ['input_image_mtok', 'input_cost_per_image_token'],
  ['cache_audio_read_mtok', 'cache_read_input_audio_token_cost'],
  ['output_audio_mtok', 'output_cost_per_audio_token'],
  ['output_image_mtok', 'output_cost_per_image_token'],
  ['output_reasoning_mtok', 'output_cost_per_reasoning_token'],
  ['output_citation_mtok', 'citation_cost_per_token'],
] as const;

function tokenRates(entry: JsonObject): ListedRates {
  const listed = TOKEN_FIELDS.flatMap(([unit, field]) => {
    const base = rateOf(entry[field]);
    return base === undefined ? [] : [[unit, withTiers(base, tiersOf(entry, field))] as const];
  });
  const rates: ListedRates = Object.fromEntries(listed);
  // genai-prices does not derive a rate for cached sound or images from the rates of their parts.
  for (const [joined, ...parts] of JOINED) {
    if (rates[joined] !== undefined || parts.some((part) => rates[part] === undefined)) continue;
    rates[joined] = Math.max(...parts.map((part) => dearest(rates[part])));
  }
  return rates;
}

/** Kinds of input that belong to two kinds. Without a rate they cost the higher rate of the two. */
const JOINED = ['audio', 'image'].flatMap((medium) =>
  ['read', 'write', 'write_1h'].map(
    (step) => [`cache_${medium}_${step}_mtok`, `input_${medium}_mtok`, `cache_${step}_mtok`] as const,
  ),
);

/** `…_above_200k_tokens`: the rate of a call whose input is longer. */
function tiersOf(entry: JsonObject, field: string) {
  return Object.entries(entry).flatMap(([name, value]) => {
    const thousands = name.startsWith(field)
      ? /^_above_(\d{1,6})k_tokens$/.exec(name.slice(field.length))
      : null;
    const price = rateOf(value);
    return thousands && price !== undefined ? [{ start: Number(thousands[1]) * 1_000, price }] : [];
  });
}

const withTiers = (base: number, tiers: readonly { start: number; price: number }[]): ListedRates[string] =>
  tiers.length === 0 ? base : { base, tiers: tiers.toSorted((a, b) => a.start - b.start) };

const dearest = (rate: ListedRates[string]): number =>
  typeof rate === 'number'
    ? rate
    : Math.max(rate?.base ?? 0, ...(rate?.tiers ?? []).map(({ price }) => price));

/** The fees of a call. A search counts as a search of the most expensive size. If each call has a fee, each call searches. */
function fees(entry: JsonObject, feePerRequest: boolean, mode: unknown): ListedRates {
  const sizes = isJsonObject(entry.search_context_cost_per_query) ? entry.search_context_cost_per_query : {};
  const search = Math.max(0, ...Object.values(sizes).filter((size) => typeof size === 'number'));
  const query = Number(entry.input_cost_per_request ?? entry.input_cost_per_query ?? 0);
  const perCall = feePerRequest ? Math.max(search, query) : query;
  return {
    ...(perCall > 0 && {
      [mode === 'rerank' ? 'rerank_searches_kcount' : 'requests_kcount']: shifted(perCall, 3),
    }),
    ...(search > 0 && !feePerRequest && { web_searches_kcount: shifted(search, 3) }),
  };
}

/** Dollars for a million tokens. Undefined where the list has no rate. */
const rateOf = (perToken: unknown): number | undefined =>
  typeof perToken === 'number' && perToken !== 0 ? shifted(perToken, 6) : undefined;

/** A number times a power of ten, without the rounding errors of a product of floats. */
function shifted(value: number, places: number): number {
  const [digits, exponent] = value.toExponential().split('e');
  return Number(`${digits}e${Number(exponent) + places}`);
}

/** The sum of input and output, because the list states them separately. */
function contextWindow({
  max_input_tokens: input,
  max_output_tokens: output = 0,
}: JsonObject): number | undefined {
  const sum = typeof input === 'number' && typeof output === 'number' ? input + output : undefined;
  return Number.isSafeInteger(sum) && Number(sum) > 0 ? sum : undefined;
}
