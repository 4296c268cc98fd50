import { expect, it } from 'vitest';
import {
  applyConfig,
  BUILT_IN_PROVIDERS,
  compileConfig,
  dialectOf,
  type JsonObject,
  type Provider,
} from '../src/index.ts';

/** A built-in provider that must exist. */
export function known(id: string): Provider {
  const provider = BUILT_IN_PROVIDERS.get(id);
  if (provider === undefined) throw new Error(`no provider ${id}`);
  return provider;
}

/** A config laid over a call to a provider's path. */
export const apply = (id: string, path: string, config: JsonObject, body: JsonObject) =>
  applyConfig(compileConfig(dialectOf(known(id), path), config), { path, body });

/** The name of the case, the config, the body that the holder sends, and the body that the provider gets. */
type Row = [what: string, config: JsonObject, sent: JsonObject, body: JsonObject];

/** One test a row: the body becomes the row's last, the path stays. */
export function maps(id: string, path: string, rows: Row[]): void {
  it.each(rows)(`${id} ${path}: %s`, (_what, config, sent, body) => {
    expect(apply(id, path, config, sent)).toEqual({ path, body });
  });
}
