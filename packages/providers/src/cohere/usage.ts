import { countOf, isJsonObject, type JsonObject, objectIn, readObject } from '../json.ts';
import { countsRead, type EventReader, type Usage } from '../spend.ts';
import { hasItems, hasText } from '../usage/content.ts';
import { COHERE_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import type { Content, Statement } from '../usage/record.ts';

/**
 * Usage of a whole answer: `usage.billed_units` in v2 chat, `meta.billed_units` elsewhere. Billed units exclude the
 * prompt's template, which `tokens` counts. (`cohere-ai` 8.1, UsageBilledUnits and ApiMetaBilledUnits.) OpenRouter has `usage` of its own.
 */
export function readCohereAnswer(answer: unknown): Statement | undefined {
  if (!isJsonObject(answer)) return undefined;
  const holder = isJsonObject(answer.usage) ? answer.usage : answer.meta;
  const usage = (isJsonObject(holder) && (billed(holder.billed_units) ?? ranked(holder))) || 'unreadable';
  return { usage, content: contentIn(answer), unknown: unknownCounts(holder, COHERE_COUNTS) };
}

/** The text of the model, in v2 or in v1; or vectors, or ranks. */
function contentIn({
  message,
  text,
  tool_calls: calls,
  embeddings,
  results,
}: JsonObject): Content | undefined {
  if ([isJsonObject(message) ? message : undefined, text, calls].some((value) => hasText(value)))
    return 'written';
  return hasItems(embeddings) || hasItems(results) ? 'result' : undefined;
}

/** Whether a body is Cohere's error: `{"message"}`, with an `id` in newer versions (`cohere-ai` 8.1, errors/). */
export const isCohereError = (answer: unknown): boolean =>
  isJsonObject(answer) &&
  typeof answer.message === 'string' &&
  Object.keys(answer).every((name) => ['message', 'id', 'data'].includes(name));

/**
 * The last event reports the usage: `message-end` in v2, `stream-end` in v1, which contains the whole answer. The events
 * of v1 come one a line, or server-sent if the header `Accepts` asks for that. https://docs.cohere.com/reference/chat-stream-v1
 */
export function readCohereStream(): EventReader {
  let ended = false;
  let failed = false;
  return {
    event: (data) => {
      const event = readObject(data);
      if (event === undefined) return undefined;
      const { type, event_type: name } = event;
      failed ||= type === undefined && name === undefined;
      if (type === 'message-end' || name === 'stream-end') {
        ended = true;
        return readCohereAnswer(objectIn(event, type === 'message-end' ? 'delta' : 'response'));
      }
      const wrote = type === undefined ? [event.text, event.tool_calls] : [objectIn(event, 'delta').message];
      return wrote.some((value) => hasText(value)) ? { content: 'written' } : undefined;
    },
    isWhole: () => ended && !failed,
  };
}

/** OpenRouter bills a rank by searches or by tokens, as its host does, and states one or both. */
function ranked(held: JsonObject): Usage | 'unreadable' | undefined {
  const searches = held.search_units === undefined ? {} : { rerank_searches: countOf(held, 'search_units') };
  const tokens = held.total_tokens === undefined ? {} : { input_tokens: countOf(held, 'total_tokens') };
  const counts = { ...searches, ...tokens };
  return Object.keys(counts).length === 0 ? undefined : countsRead(counts);
}

function billed(units: unknown): Usage | 'unreadable' | undefined {
  if (!isJsonObject(units)) return undefined;
  const searches = countOf(units, 'search_units');
  const tokens = {
    input_tokens: countOf(units, 'input_tokens'),
    output_tokens: countOf(units, 'output_tokens'),
  };
  // A search together with tokens is a connector's, which has another price.
  if (searches > 0 && tokens.input_tokens + tokens.output_tokens > 0) return undefined;
  return countsRead(searches > 0 ? { rerank_searches: searches } : tokens);
}
