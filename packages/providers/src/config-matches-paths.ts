import { modelOf } from './apply-config.ts';
import type { JsonObject, ModelInPath } from './dialect.ts';
import { dialectOf } from './dialect-of.ts';
import { writeModelInPath } from './model-in-path.ts';
import { checkCallPath, compilePaths } from './path.ts';
import type { Provider } from './provider.ts';

/**
 * Whether a grant can be used with its config: each path, once `config.model` stands in it, must still be one
 * of the grant's. Otherwise every call would be refused, so the issuer refuses first.
 * @returns true, or the path that `config.model` cannot be used with.
 */
export function configMatchesPaths(
  provider: Provider,
  config: JsonObject,
  paths: readonly string[],
): true | { path: string } {
  if (!Object.hasOwn(config, 'model')) return true;
  const matches = compilePaths(paths);
  const model = modelOf(config);
  const unusable = paths.find((path) => {
    const place = modelPlace(provider, path);
    if (place === undefined) return false;
    if (model === undefined) return true;
    const written = writeModelInPath(place, model, path);
    return checkCallPath(written) !== undefined || !matches(written);
  });
  return unusable === undefined ? true : { path: unusable };
}

/** A pattern may be too wide to tell its endpoint, yet hold a model's segment (`/v1beta/models/gemini-2*`). */
function modelPlace(provider: Provider, path: string): ModelInPath | undefined {
  const dialect = dialectOf(provider, path);
  if (dialect !== undefined || !path.includes('*')) return dialect?.modelInPath;
  return provider.routes.find((route) => route.dialect.modelInPath)?.dialect.modelInPath;
}
