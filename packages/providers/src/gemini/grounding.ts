import { COUNTED_SOURCES } from '../facts/gemini.ts';
import { isJsonObject, type JsonObject, objectIn } from '../json.ts';
import type { Statement } from '../usage/record.ts';

/**
 * The searches that grounded an answer. Up to Gemini 2.5 each grounded prompt has a fee. From Gemini 3 on each query has a fee
 * (https://ai.google.dev/gemini-api/docs/pricing). Both are counted, and the price of the model says which one costs. Google Maps has a fee
 * of its own. Reading pages (`urlContextMetadata`) costs their tokens only.
 * @param queries those of the stream's earlier events. Gets the new ones.
 */
export function groundingIn(
  candidates: readonly JsonObject[],
  queries: Set<string>,
): Pick<Statement, 'fees' | 'unknown'> {
  const all = candidates.map((candidate) => objectIn(candidate, 'groundingMetadata'));
  if (all.every((metadata) => Object.keys(metadata).length === 0)) return {};
  const chunks = all.flatMap((metadata) => objectsIn(metadata.groundingChunks));
  const kinds = new Set(chunks.flatMap((chunk) => Object.keys(chunk)));
  const asked = all.flatMap(({ webSearchQueries: list }) => (Array.isArray(list) ? list : [])).map(String);
  for (const query of asked) queries.add(query);
  const searches =
    kinds.has('web') ||
    all.some(({ searchEntryPoint: entry }) => isJsonObject(entry)) ||
    (asked.length > 0 && !kinds.has('maps'));
  const others = [...kinds]
    .filter((kind) => !COUNTED.includes(kind))
    .map((kind) => `groundingChunks.${kind}`);
  const images = all.some(({ imageSearchQueries: list }) => Array.isArray(list) && list.length > 0);
  return {
    fees: {
      ...(searches && {
        grounded_prompts: 1,
        grounding_searches: Math.max(1, asked.length, queries.size),
      }),
      ...(kinds.has('maps') && { map_prompts: 1 }),
    },
    unknown: [...others, ...(images ? ['imageSearchQueries'] : [])],
  };
}

const { names: COUNTED } = COUNTED_SOURCES;

const objectsIn = (list: unknown): readonly JsonObject[] =>
  Array.isArray(list) ? list.filter(isJsonObject) : [];
