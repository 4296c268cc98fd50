import { type Dialect, fieldName, type ModelInPath } from './dialect.ts';
import { dialectOf, slashedIdsOf } from './dialect-of.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { checkCallPath, compilePaths, decoded } from './path.ts';
import type { Provider } from './provider.ts';

/**
 * Writes a model into the path, where the API names it there:
 * `/v1beta/models/OLD:generateContent` → `/v1beta/models/NEW:generateContent`.
 * A path without such a segment is returned unchanged. A model whose name cannot be a segment gives a path that fails
 * the caller's check.
 */
export function writeModelInPath(
  { collections, withMethod }: ModelInPath,
  model: string,
  path: string,
): string {
  const segments = path.split('/');
  const at = segments.slice(0, -1).findIndex((segment) => isOneOf(collections, segment));
  if (at === -1) return path;
  const [collection = '', ...name] = resourceName(collections, model).split('/');
  const written = `${collection}/${encode(name.join('/'))}`;
  const method = withMethod ? methodOf(segments[at + 1] ?? '') : '';
  return segments.toSpliced(at, 2, written + method).join('/');
}

/**
 * The model that a path names, as a config would name it.
 * @returns undefined if the path names no model, or if servers may read different names in it (another case of a known segment,
 * parameters)
 */
export function segmentModel({ collections, withMethod }: ModelInPath, path: string): string | undefined {
  const segments = path.split('/');
  const at = segments.slice(0, -1).findIndex((segment) => isOneOf(collections, segment));
  const [collection = '', segment = ''] = at === -1 ? [] : segments.slice(at);
  if (!collections.includes(collection) || path.includes(';')) return undefined;
  const method = withMethod ? methodOf(segment) : '';
  const name = decoded(segment.slice(0, segment.length - method.length)) || undefined;
  return name === undefined || collection === collections[0] ? name : `${collection}/${name}`;
}

/** Writes a model wherever the body repeats the path's. Absent fields stay absent. */
export function writeModelInBody(dialect: Dialect, model: string, body: JsonObject): JsonObject {
  const place = dialect.modelInPath;
  if (place === undefined) return body;
  const value = place.withMethod ? resourceName(place.collections, model) : model;
  return place.repeatedAt.reduce<JsonObject>((result, names) => {
    const replaced = replaceAt(dialect, names, value, result);
    return isJsonObject(replaced) ? replaced : result;
  }, body);
}

/** The model that a config sets. Undefined if there is none, or if it is not a name. */
export function modelOf(config: JsonObject): string | undefined {
  const model = Object.hasOwn(config, 'model') ? config.model : undefined;
  return typeof model === 'string' ? model : undefined;
}

/**
 * Whether a grant can be used with its config: each path must still match the grant with `config.model` in it.
 * Otherwise the gateway would refuse every call, so the issuer refuses the grant.
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
  const hasSlashedIds = slashedIdsOf(provider);
  const unusable = paths.find((path) => {
    const place = modelPlace(provider, path);
    if (place === undefined) return false;
    if (model === undefined) return true;
    const written = writeModelInPath(place, model, path);
    return checkCallPath(written, hasSlashedIds) !== undefined || !matches(written);
  });
  return unusable === undefined ? true : { path: unusable };
}

/** A pattern may match several endpoints and still contain a model's segment (`/v1beta/models/gemini-2*`). */
function modelPlace(provider: Provider, path: string): ModelInPath | undefined {
  const dialect = dialectOf(provider, path);
  if (dialect !== undefined || !path.includes('*')) return dialect?.modelInPath;
  return provider.routes.find((route) => route.dialect.modelInPath)?.dialect.modelInPath;
}

/** As lenient as `dialectOf`: it ignores case and path parameters. */
const isOneOf = (collections: ModelInPath['collections'], segment: string): boolean =>
  collections.some((name) => name.toLowerCase() === segment.toLowerCase().split(';')[0]);

/** `gemini-x` and `models/gemini-x` both mean `models/gemini-x`; `tunedModels/mine` is left as it is. */
export const resourceName = (collections: ModelInPath['collections'], model: string): string =>
  collections.some((collection) => model.startsWith(`${collection}/`)) ? model : `${collections[0]}/${model}`;

/** Everything from the last colon on. A pattern's star there stands for a method, too. */
function methodOf(segment: string): string {
  const colon = Math.max(segment.lastIndexOf(':'), segment.toLowerCase().lastIndexOf('%3a'));
  if (colon === -1) return segment.endsWith('*') ? ':*' : '';
  return segment.slice(colon);
}

/** Lone surrogates have no encoding (encodeURIComponent throws), so they become U+FFFD. */
const encode = (segment: string): string => encodeURIComponent(segment.toWellFormed());

function replaceAt(
  dialect: Dialect,
  [name, ...deeper]: readonly string[],
  value: string,
  held: unknown,
): unknown {
  if (name === undefined) return value;
  if (name === '[]') {
    return Array.isArray(held) ? held.map((element) => replaceAt(dialect, deeper, value, element)) : held;
  }
  if (!isJsonObject(held)) return held;
  return Object.fromEntries(
    Object.entries(held).map(([key, old]) => [
      key,
      fieldName(dialect, key) === name ? replaceAt(dialect, deeper, value, old) : old,
    ]),
  );
}
