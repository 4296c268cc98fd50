import { countOf, isJsonObject, type JsonObject, readObject } from '../json.ts';
import { type Reported, type StreamReader, type Usage, usageOf } from '../spend.ts';

/** Usage of a whole message. */
export function readAnthropicAnswer(answer: unknown): Reported | undefined {
  if (!isJsonObject(answer) || answer.type !== 'message') return undefined;
  return reported(answer.model, answer.usage);
}

/**
 * A stream's usage is said twice: in `message_start` as it begins, in each `message_delta` as it then stands,
 * cumulative. `message_stop` is the last word.
 * https://platform.claude.com/docs/en/build-with-claude/streaming#event-types
 */
export function readAnthropicStream(): StreamReader {
  let model: unknown;
  let usage: JsonObject = {};
  let deltas = 0;
  let stopped = false;
  let failed = false;
  return {
    event: (data) => {
      const event = readObject(data);
      if (event?.type === 'message_start' && isJsonObject(event.message)) {
        model = event.message.model;
        usage = overlaid(usage, event.message.usage);
      }
      if (event?.type === 'message_delta') {
        usage = overlaid(usage, event.usage);
        if (isJsonObject(event.usage)) deltas++;
      }
      stopped ||= event?.type === 'message_stop';
      failed ||= event?.type === 'error';
    },
    end: () => (stopped && !failed && deltas > 0 ? reported(model, usage) : undefined),
  };
}

/** What `over` says wins; null says nothing. */
const overlaid = (base: JsonObject, over: unknown): JsonObject => ({
  ...base,
  ...(isJsonObject(over)
    ? Object.fromEntries(Object.entries(over).filter(([, value]) => value !== null))
    : {}),
});

function reported(model: unknown, usage: unknown): Reported | undefined {
  if (!isJsonObject(usage) || !isListPrice(usage)) return undefined;
  if (typeof usage.input_tokens !== 'number' || typeof usage.output_tokens !== 'number') return undefined;
  const counts = usageOf(countsOf(usage));
  return counts && { model: typeof model === 'string' ? model : undefined, usage: counts };
}

/** `input_tokens` leaves out what was read from and written to the cache; the price list's counts all. */
function countsOf(usage: JsonObject): Usage {
  const written = countOf(usage, 'cache_creation_input_tokens');
  const read = countOf(usage, 'cache_read_input_tokens');
  return {
    input_tokens: countOf(usage, 'input_tokens') + written + read,
    cache_write_tokens: written,
    cache_write_1h_tokens: countOf(usage.cache_creation, 'ephemeral_1h_input_tokens'),
    cache_read_tokens: read,
    output_tokens: countOf(usage, 'output_tokens'),
    output_reasoning_tokens: countOf(usage.output_tokens_details, 'thinking_tokens'),
    web_searches: countOf(usage.server_tool_use, 'web_search_requests'),
  };
}

/**
 * Whether all that was used is counted in these fields and paid for as listed. Another tier, speed or region has
 * another price (1.1 times in the US alone, which a workspace's default can choose); code is paid for by the hour;
 * what a compaction, an advisor or a fallback model used stands apart, in `iterations`.
 */
function isListPrice({
  service_tier,
  speed,
  inference_geo,
  server_tool_use,
  iterations,
}: JsonObject): boolean {
  return (
    [undefined, null, 'standard'].includes(service_tier as string) &&
    [undefined, null, 'standard'].includes(speed as string) &&
    [undefined, null, 'global', 'not_available'].includes(inference_geo as string) &&
    countOf(server_tool_use, 'code_execution_requests') === 0 &&
    (!Array.isArray(iterations) || iterations.every((each) => isJsonObject(each) && each.type === 'message'))
  );
}
