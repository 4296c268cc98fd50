import { type Dialect, fieldName, isJsonObject, type JsonObject, type ModelInPath } from './dialect.ts';

/**
 * Writes a model into the path, where the API names it there:
 * `/v1beta/models/OLD:generateContent` → `/v1beta/models/NEW:generateContent`.
 * A path without such a segment is returned as it is. What was no name for a segment stays none: the caller
 * checks and matches the result.
 */
export function writeModelInPath(
  { collections, withMethod }: ModelInPath,
  model: string,
  path: string,
): string {
  const segments = path.split('/');
  const known = collections.map((collection) => collection.toLowerCase());
  const at = segments.findIndex(
    (segment, i) => i + 1 < segments.length && known.includes(segment.toLowerCase()),
  );
  if (at === -1) return path;
  const written = resourceName(collections, model).split('/').map(encode).join('/');
  const method = withMethod ? methodOf(segments[at + 1] ?? '') : '';
  return segments.toSpliced(at, 2, written + method).join('/');
}

/** Writes a model wherever the body repeats the path's; fields that are absent stay so. */
export function writeModelInBody(dialect: Dialect, model: string, body: JsonObject): JsonObject {
  const place = dialect.modelInPath;
  if (place === undefined) return body;
  const value = place.withMethod ? resourceName(place.collections, model) : model;
  return place.repeatedAt.reduce<JsonObject>((result, names) => {
    const replaced = replaceAt(dialect, names, value, result);
    return isJsonObject(replaced) ? replaced : result;
  }, body);
}

/** `gemini-x` and `models/gemini-x` both mean `models/gemini-x`; `tunedModels/mine` is left as it is. */
const resourceName = (collections: ModelInPath['collections'], model: string): string =>
  collections.some((collection) => model.startsWith(`${collection}/`)) ? model : `${collections[0]}/${model}`;

/** Everything from the last colon on. A pattern's star in its stead stands for a method too. */
const methodOf = (segment: string): string =>
  /(?::|%3A)(?!.*(?::|%3A)).*$/i.exec(segment)?.[0] ?? (segment.endsWith('*') ? ':*' : '');

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
