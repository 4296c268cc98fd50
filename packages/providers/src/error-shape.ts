import type { ErrorShape } from './dialect.ts';
import { dialectOf } from './dialect-of.ts';
import { openaiErrors } from './openai/errors.ts';
import type { Provider } from './provider.ts';
import { BUILT_IN_PROVIDERS } from './vendors.ts';

/**
 * The form that errors have at a path, so that the holder's SDK can read a refusal of the gateway.
 * @param provider undefined if the token does not name one. The path then decides alone.
 */
export function errorShapeOf(provider: Provider | undefined, path: string): ErrorShape {
  const speaker = provider ?? [...BUILT_IN_PROVIDERS.values()].find((each) => dialectOf(each, path));
  const dialect = speaker && dialectOf(speaker, path);
  return dialect ? (dialect.errors ?? openaiErrors) : (speaker?.errors?.(path) ?? openaiErrors);
}
