export { applyConfig } from './apply-config.ts';
export { configMatchesPaths } from './config-matches-paths.ts';
export type { Dialect, JsonObject } from './dialect.ts';
export { costsNothing, credentialOf, dialectOf } from './dialect-of.ts';
export { loadProviders, ProvidersFileError } from './load-providers.ts';
export { modelFacts } from './model-facts.ts';
export {
  checkCallPath,
  checkPathPattern,
  compilePaths,
  doubledVersionPrefix,
  type PathMatcher,
} from './path.ts';
export {
  CREDENTIAL_QUERY_KEYS,
  type Credential,
  type FreeCall,
  HOLDER_CREDENTIAL_HEADERS,
  type ModelPrice,
  PARTIAL_ANSWER_HEADERS,
  PARTIAL_ANSWER_QUERY_KEYS,
  type Provider,
  type Route,
} from './provider.ts';
export type { Bound, ModelFacts, Reported, Spend, StreamReader, Unbounded, Usage } from './spend.ts';
export { BUILT_IN_PROVIDERS } from './vendors.ts';
