import { countOf, isJsonObject, type JsonObject, readObject } from '../json.ts';
import { type Reported, type StreamReader, type Usage, usageOf } from '../spend.ts';

/**
 * Usage of a whole answer: `usage.billed_units` in v2 chat, `meta.billed_units` elsewhere. Billed units exclude the
 * prompt's template, which `tokens` counts. (`cohere-ai` 8.1, UsageBilledUnits and ApiMetaBilledUnits.)
 */
export function readCohereAnswer(answer: unknown): Reported | undefined {
  if (!isJsonObject(answer)) return undefined;
  const holder = isJsonObject(answer.usage) ? answer.usage : answer.meta;
  const usage = billed(isJsonObject(holder) ? holder.billed_units : undefined);
  return usage && { model: undefined, usage };
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
export function readCohereStream(): StreamReader {
  let last: JsonObject | undefined;
  let failed = false;
  return {
    event: (data) => {
      const event = readObject(data);
      if (event === undefined) return;
      failed ||= event.type === undefined && event.event_type === undefined;
      if (event.type === 'message-end') last = isJsonObject(event.delta) ? event.delta : {};
      if (event.event_type === 'stream-end') last = isJsonObject(event.response) ? event.response : {};
    },
    end: () => (last === undefined || failed ? undefined : readCohereAnswer(last)),
  };
}

/** Other units (images, classifications, pages) have no listed price, so they make the usage unknown. */
const COUNTED: readonly string[] = ['input_tokens', 'output_tokens', 'search_units'];

function billed(units: unknown): Usage | undefined {
  if (!isJsonObject(units)) return undefined;
  const others = Object.keys(units).filter((unit) => !COUNTED.includes(unit));
  if (others.some((unit) => countOf(units, unit) !== 0)) return undefined;
  const searches = countOf(units, 'search_units');
  const tokens = {
    input_tokens: countOf(units, 'input_tokens'),
    output_tokens: countOf(units, 'output_tokens'),
  };
  // A search together with tokens is a connector's, which has another price.
  if (searches > 0 && tokens.input_tokens + tokens.output_tokens > 0) return undefined;
  return searches > 0 ? usageOf({ rerank_searches: searches }) : usageOf(tokens);
}
