import type { Dialect, ErrorShape } from './dialect.ts';
import * as OF_CALLS from './facts/calls.ts';
import type { Encoding, FreeCall, Models, Rates } from './facts/fact.ts';
import type { CacheWrites, ModelPrice } from './facts/rates.ts';
import type { VendorRefusals } from './refusals.ts';
import type { VendorRules } from './vendor-rules.ts';

/** The header in which a provider expects its key, or what is made from the key for each call. */
export type Credential =
  | { readonly header: 'authorization'; readonly scheme: 'Bearer' }
  | { readonly header: 'x-api-key' | 'x-goog-api-key' | 'api-key'; readonly scheme?: undefined }
  | AwsSignature
  | ServiceAccount;

/**
 * The key signs each call, its body included, with Signature Version 4 for one service of AWS. The key is a JSON text
 * (`readAwsKey`). https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
 */
export type AwsSignature = {
  readonly header: 'authorization';
  readonly scheme: 'AWS4-HMAC-SHA256';
  readonly service: string;
};

export const BEARER: Credential = { header: 'authorization', scheme: 'Bearer' };

/**
 * The key of a service account of Google (`readServiceAccount`). It signs the request for an access token, which calls
 * carry. https://developers.google.com/identity/protocols/oauth2/service-account
 */
export type ServiceAccount = {
  readonly header: 'authorization';
  readonly scheme: 'service account';
  /** The only address that a request for a token goes to, whatever the key says. */
  readonly tokenUrl: string;
  readonly scope: string;
};

/** An endpoint whose API is known. Other endpoints are forwarded without a look at their bodies. */
export type Route = {
  /** Path after the provider's origin; `*` stands for one or more characters except `/`. */
  path: string;
  dialect: Dialect;
  /** Set if the endpoint takes its key in another header than the provider's other endpoints. */
  credential?: Credential;
  /** The protocol in which it can be called over a WebSocket. Absent: only over HTTP. */
  socket?: 'responses' | 'realtime';
};

/** A vendor's models by name without a date (`Models`): context window and maximum output in tokens, and whether they think. */
export type ModelRows = { readonly [name: string]: ModelRow };

export type ModelRow = readonly [
  contextWindow: number | undefined,
  maxOutput: number | undefined,
  thinks?: 'thinks' | undefined,
];

/** The rows of models from a list. */
export const rowsOf = ({ models }: Models): ModelRows =>
  Object.fromEntries(
    Object.entries(models).map(([name, { window, output, thinks }]): [string, ModelRow] => [
      name,
      thinks ? [window, output, 'thinks'] : [window, output],
    ]),
  );

/** The first of several lists of rates that a model has. */
export const ratesFor = (model: string, lists: readonly Rates[]): ModelPrice | undefined =>
  lists.find(({ matching }) => matching.test(model))?.rates;

/** A provider as data: address, header of the key, the dialect on each path, rules and models. */
export type Provider = {
  id: string;
  /**
   * Origin, and a path prefix if there is one, without a trailing slash. A call goes to `baseUrl + path`.
   * Undefined if each customer has an address of their own. The operator must then supply it.
   */
  baseUrl: string | undefined;
  /** The origin in the region of a key or a path. Absent if all regions share `baseUrl`, or if the operator has set it. */
  originIn?: (call: { readonly region: string | undefined; readonly path: string }) => string | undefined;
  credential: Credential;
  routes: readonly Route[];
  /**
   * Endpoints that open sessions which pass by no gateway, or hand out keys. No limit of a URL would hold for these, so their calls are refused.
   */
  outside?: readonly string[];
  /** Calls that are free: lists, stored answers, token counts. All other calls are billed. */
  free?: readonly FreeCall[];
  /**
   * Paths whose `*` is an id that may hold slashes, each encoded as `%2F`: ARNs at AWS, `openai/gpt-oss-120b` elsewhere. No
   * other path may have an encoded slash.
   */
  slashedIds?: readonly string[];
  /** Rules about money, for calls in every dialect. */
  rules: VendorRules;
  /** The form of its errors on a path that no route has. Absent: OpenAI's. */
  errors?: (path: string) => ErrorShape;
  /** The errors whose billing the vendor documents, or `undocumented` if it documents none. */
  refusals: VendorRefusals;
  /**
   * Headers of its answers that reach the holder, next to those of every upstream (`answers/answer-headers.ts`): names in lower
   * case, or the beginning of names and `*`.
   */
  answerHeaders?: readonly string[];
  models?: ModelRows;
  /** Those that a knowledge file adds. */
  addedModels?: ModelRows;
  /** Fields of its bodies, next to `model`, that choose a model. A URL with a list of models refuses them at every provider. */
  modelFields?: readonly string[];
  /** Its name in the conventions of OpenTelemetry (`gen_ai.provider.name`). Absent: its id. */
  traceName?: string;
  /**
   * The vendor's own servers. Two things are known only of them: streams state the whole billed input at their start, and a cache lasts
   * five minutes unless the body asks for an hour.
   */
  isOwnHost?: true;
  /** The encodings that the vendor publishes, by model without a date. Plain text of these models can be counted. */
  encodings?: ReadonlyMap<string, Encoding>;
  /** Names of the vendor in the model names of resellers: `mistralai` in `mistralai/codestral`. */
  makerNames?: readonly string[];
  /** It sells other vendors' models too, under the names of their makers. */
  resells?: true;
  /** Name of the provider in the price list of @pydantic/genai-prices; absent if its prices are not in that list. */
  priceList?: string;
  /** Its names in LiteLLM's price list, where they differ from `priceList`. */
  liteLlm?: readonly string[];
  /** The models of LiteLLM's list whose price is sure. Absent: all. */
  liteLlmModels?: RegExp;
  /** Models whose price in that list holds wherever they run. Absent: all. Others need the operator's own price. */
  listedModels?: RegExp;
  /** The name in `models` of a model that the vendor's API names in another way. */
  modelRow?: (model: string) => string;
  /** A call names a deployment of the customer, whose name need not say which model it runs. */
  namesDeployments?: true;
  /** The models of deployments, by the names of these. */
  deployments?: ReadonlyMap<string, string>;
  /** Rates that the vendor publishes and lists leave out: of sound, and fees. A list's own rate comes first. */
  publishedRates?: (model: string) => ModelPrice | undefined;
  /** Tokens of sound, pictures and video that cost as all input or all output, where the price of a model has no rate of their own. */
  mediaAsWhole?: ReadonlySet<string>;
  /** How the price of cache writes follows from that of the input, for models whose price does not state it. */
  cacheWrites?: (model: string) => CacheWrites | undefined;
  /** Prices in other units than tokens that the vendor publishes, for models that no list prices. */
  unitPrices?: ReadonlyMap<string, ModelPrice>;
  /** The version of what is known of it (`source:id`), for figures and the ledger. Absent: `BUILT_IN_PROVIDERS` alone. */
  knowledge?: string;
  /** The operator's own prices by model; none for built-in providers. */
  pricing?: ReadonlyMap<string, ModelPrice>;
};

/** A holder's own are never forwarded. */
export const HOLDER_CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(OF_CALLS.CREDENTIAL_HEADERS.names);

/** They are dropped from every call, in any case. */
export const CREDENTIAL_QUERY_KEYS: ReadonlySet<string> = new Set(
  [OF_CALLS.CREDENTIAL_KEYS, OF_CALLS.CREDENTIAL_KEYS_OF_GOOGLE, OF_CALLS.CREDENTIAL_KEYS_OF_AWS].flatMap(
    ({ names }) => names,
  ),
);

/** A holder's own are never forwarded next to the token of a service account. */
export const PAYING_PROJECT_HEADERS = OF_CALLS.PAYING_PROJECT_HEADERS.names;

export const PARTIAL_ANSWER_HEADERS = OF_CALLS.PARTIAL_ANSWER_HEADERS.names;
export const PARTIAL_ANSWER_QUERY_KEYS: ReadonlySet<string> = new Set(OF_CALLS.PARTIAL_ANSWER_KEYS.names);
