export { ANSWER_HEADERS_OF_ALL, type AnswerHeaders, answerHeadersOf } from './answers/answer-headers.ts';
export { nameOfPlace } from './bounds/beyond-lists.ts';
export { MODEL_FIELDS, strayModel, strayPath } from './called-models.ts';
export {
  type AwsKey,
  keyProblem,
  readAwsKey,
  readServiceAccount,
} from './cloud-key.ts';
export { applyConfig } from './config/apply-config.ts';
export { type CompiledConfig, compileConfig } from './config/compile-config.ts';
export { fieldOverFixed } from './config/fixed-config.ts';
export type { Dialect, ErrorShape } from './dialect.ts';
export {
  costsNothing,
  credentialOf,
  dialectOf,
  leadsOutside,
  reachesSocket,
  slashedIdsOf,
  socketOf,
  spendOf,
} from './dialect-of.ts';
export type { Encoding, FreeCall } from './facts/fact.ts';
export { SOCKET_FIELDS } from './facts/openai/responses.ts';
export { FEE_UNITS, type ModelPrice, TOKEN_KINDS } from './facts/rates.ts';
export type { JsonObject } from './json.ts';
export { BUNDLED_KNOWLEDGE, type Knowledge, readKnowledge } from './knowledge/knowledge.ts';
export { loadProviders, ProvidersFileError, readProvidersFile } from './knowledge/load-providers.ts';
export { configMatchesPaths, writeModelInPath } from './model-in-path.ts';
export { tokenCounter } from './openai/count-tokens.ts';
export { openaiErrors } from './openai/errors.ts';
export { savedTokens } from './openai/input.ts';
export {
  configuredSession,
  type GovernedSession,
  governSession,
  isModelName,
  openingSession,
  refusedItem,
  refusedResponse,
  responseFields,
  sessionModel,
  worksByItself,
} from './openai/realtime.ts';
export {
  checkCallPath,
  checkPathPattern,
  compilePaths,
  doubledVersionPrefix,
  type PathMatcher,
  repeatedEnd,
} from './path.ts';
export { type Answered, answeredBy, coverageOf, isOneModel, priceUnknown } from './prices/call-prices.ts';
export { chargedPrice } from './prices/charged-price.ts';
export { cheapestCall } from './prices/cheapest-call.ts';
export { type Pricing, tokensMicrousd } from './prices/price.ts';
export { type PriceLine, sumOfLines } from './prices/price-lines.ts';
export { type PriceList, readPriceList } from './prices/price-list.ts';
export { pricedBound } from './prices/priced-bound.ts';
export { BUNDLED_PRICES, type Prices, type PricesAt, pricedModels, pricingOf } from './prices/prices.ts';
export { type Cheapest, type Dead, whyDead, whyUncounted } from './prices/why-dead.ts';
export {
  type AwsSignature,
  CREDENTIAL_QUERY_KEYS,
  type Credential,
  HOLDER_CREDENTIAL_HEADERS,
  PARTIAL_ANSWER_HEADERS,
  PARTIAL_ANSWER_QUERY_KEYS,
  PAYING_PROJECT_HEADERS,
  type Provider,
  type Route,
  type ServiceAccount,
} from './provider.ts';
export {
  billingOf,
  type ErrorFacts,
  errorFactsIn,
  largestFee,
  type VendorRefusals,
} from './refusals.ts';
export type {
  Bound,
  CountTokens,
  ModelFacts,
  RequestFacts,
  SavedTokens,
  Spend,
  StreamReader,
  Unbounded,
  Usage,
} from './spend.ts';
export { type Doubt, type Reported, STATED_TWICE } from './usage/record.ts';
export { statesTwice } from './usage/twice.ts';
export type { VendorRules } from './vendor-rules.ts';
export { BUILT_IN_PROVIDERS, encodingOf, errorShapeOf, modelFacts } from './vendors.ts';
export { whyNoSocket, whyNoTurn } from './why-no-socket.ts';
