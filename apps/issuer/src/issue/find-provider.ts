import type { Provider } from '@presign/providers';
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
