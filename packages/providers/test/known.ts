import { BUILT_IN_PROVIDERS, type Provider } from '../src/index.ts';

/** A built-in provider that must exist. */
export function known(id: string): Provider {
  const provider = BUILT_IN_PROVIDERS.get(id);
  if (provider === undefined) throw new Error(`no provider ${id}`);
  return provider;
}
