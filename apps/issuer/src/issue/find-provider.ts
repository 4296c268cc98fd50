import { keyProblem, type Provider } from '@presign/providers';
import { RefusedError } from '@presign/schema';

/**
 * Finds the provider that a request names.
 * @throws RefusedError `unknown_provider` for an unknown name, or a provider without an address
 */
export function findProvider(providers: ReadonlyMap<string, Provider>, id: string): Provider {
  const provider = providers.get(id);
  if (provider?.baseUrl !== undefined) return provider;
  const known = [...providers.values()].filter((each) => each.baseUrl !== undefined);
  const message = provider
    ? `provider: ${provider.id} needs a base_url in the operator's PROVIDERS_FILE.`
    : `provider: expected one of ${known.map((each) => each.id).join(', ')}.`;
  throw new RefusedError({ code: 'unknown_provider', param: 'provider', message });
}

/**
 * Refuses a key that no call to the provider could use.
 * @param param the field that has the key. The message does not quote the key.
 * @throws RefusedError `invalid_request`
 */
export function checkKey(provider: Provider, param: string, key: string): void {
  const problem = keyProblem(provider, key);
  if (problem === undefined) return;
  throw new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });
}
