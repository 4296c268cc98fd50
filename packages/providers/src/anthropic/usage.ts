import { countOf, isJsonObject, type JsonObject, objectIn, readObject, textOf } from '../json.ts';
import { countsRead, type EventReader, type Usage } from '../spend.ts';
import { hasText } from '../usage/content.ts';
import { ANTHROPIC_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import type { Statement } from '../usage/record.ts';

/** Usage of a whole message. */
export function readAnthropicAnswer(answer: unknown): Statement | undefined {
  if (!isJsonObject(answer) || answer.type !== 'message') return undefined;
  const blocks = Array.isArray(answer.content) ? answer.content.filter(isJsonObject) : [];
  const codes = blocks.flatMap(({ type }) => (CODE_BLOCK.test(textOf(type)) ? 'container' : []));
  const { unknown = [], ...statement } = stated(answer, answer.usage);
  const content = blocks.some((block) => hasText(block)) ? 'written' : undefined;
  const parts = { ...statement.parts, web_searches: blocks.filter(isSearched).length };
  return { ...statement, parts, content, unknown: [...unknown, ...codes] };
}

/** The results of a search that ran, which has a fee. A failed search is an object, and free. */
const isSearched = ({ type, content }: JsonObject): boolean =>
  type === 'web_search_tool_result' && Array.isArray(content);

/** Results of code that Anthropic ran. It is billed by the hour. */
const CODE_BLOCK = /code_execution_tool_result$/;

/**
 * A stream reports its usage in `message_start`, and again in each `message_delta`, cumulatively. It ends with
 * `message_stop`.
 * https://platform.claude.com/docs/en/build-with-claude/streaming#event-types
 */
const MESSAGE_EVENT = Buffer.from('"message_');
const ERROR_EVENT = Buffer.from('"error"');
const CONTENT_EVENT = Buffer.from('"content_block_');
const SEARCH_EVENT = Buffer.from('"web_search_tool_result"');
const CODE_EVENT = Buffer.from('code_execution_tool_result"');

export function readAnthropicStream(): EventReader {
  let message: JsonObject = {};
  let usage: JsonObject = {};
  let started = false;
  let deltas = 0;
  let stopped = false;
  let failed = false;
  let searches = 0;
  return {
    matters: (event) =>
      [MESSAGE_EVENT, ERROR_EVENT, CODE_EVENT, SEARCH_EVENT].some((part) => event.includes(part)),
    mayBeWritten: (event) => event.includes(CONTENT_EVENT),
    event: (data) => {
      const event = readObject(data);
      stopped ||= event?.type === 'message_stop';
      failed ||= event?.type === 'error';
      if (event?.type === 'message_start' && isJsonObject(event.message)) {
        started = true;
        message = event.message;
        usage = overlaid(usage, message.usage);
        return stated(message, usage);
      }
      if (event?.type === 'message_delta') {
        const zeroed = restatesNoInput(event.usage) && INPUTS.some((name) => countOf(usage, name) > 0);
        usage = overlaid(usage, zeroed ? without(event.usage, INPUTS) : event.usage);
        if (isJsonObject(event.usage)) deltas++;
        return { ...stated({ ...message, ...objectIn(event, 'delta') }, usage), zeroed };
      }
      if (isJsonObject(event?.content_block) && isSearched(event.content_block)) searches++;
      return { ...contentOf(event), parts: { web_searches: searches } };
    },
    statesInput: () => started && !failed && deltas === 0,
    isWhole: () => stopped && !failed && deltas > 0,
  };
}

/** The content that a block begins with, or gets. */
function contentOf(event: JsonObject | undefined): Statement | undefined {
  const { content_block: block, delta } = event ?? {};
  const isCode = isJsonObject(block) && CODE_BLOCK.test(textOf(block.type));
  return hasText(block) || hasText(delta)
    ? { content: 'written', unknown: isCode ? ['container'] : [] }
    : undefined;
}

const INPUTS = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'cache_creation'];

/**
 * Whether the usage of a delta has 0 for all input. Servers that only speak this API state the input in `message_start` and
 * write 0 here, which is no statement (https://github.com/envoyproxy/ai-gateway/issues/1631, https://github.com/sgl-project/sglang/pull/20830). A
 * delta that restates some of the input restates all of it.
 */
const restatesNoInput = (usage: unknown): boolean =>
  isJsonObject(usage) &&
  INPUTS.some((name) => usage[name] === 0) &&
  INPUTS.every((name) => (isJsonObject(usage[name]) ? true : (usage[name] ?? 0) === 0));

const without = (usage: unknown, names: readonly string[]): JsonObject =>
  Object.fromEntries(
    Object.entries(isJsonObject(usage) ? usage : {}).filter(([name]) => !names.includes(name)),
  );

/** Fields of `over` take precedence. A null field counts as absent. */
const overlaid = (base: JsonObject, over: unknown): JsonObject => ({
  ...base,
  ...(isJsonObject(over)
    ? Object.fromEntries(Object.entries(over).filter(([, value]) => value !== null))
    : {}),
});

/** The statement of a message with this usage. A container runs code, which is billed by the hour. */
function stated({ model, container }: JsonObject, usage: unknown): Statement {
  const name = typeof model === 'string' ? model : undefined;
  const runs = container === undefined || container === null ? [] : ['container'];
  return {
    model: name,
    usage: readUsage(usage),
    parts: partsOf(usage),
    unknown: [...costlyIn(usage), ...runs],
  };
}

function readUsage(usage: unknown): Usage | 'unreadable' {
  if (!isJsonObject(usage) || !isListPrice(usage)) return 'unreadable';
  if (typeof usage.input_tokens !== 'number' || typeof usage.output_tokens !== 'number') return 'unreadable';
  return countsRead(countsOf(usage));
}

/** The usage of a compaction, an advisor or a fallback model is reported apart, in `iterations`. */
function costlyIn(usage: unknown): readonly string[] {
  const apart = iterationsIn(usage).flatMap(({ type }) =>
    type === 'message' ? [] : `iterations.${textOf(type)}`,
  );
  return [...apart, ...unknownCounts(usage, ANTHROPIC_COUNTS)];
}

/** Anthropic's `input_tokens` exclude tokens read from and written to the cache. The price list's include them. */
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

/** The sums of the cache writes of five minutes and an hour, of the thoughts, and of the iterations of the message. */
function partsOf(usage: unknown): Usage {
  if (!isJsonObject(usage)) return {};
  const written =
    countOf(usage.cache_creation, 'ephemeral_5m_input_tokens') +
    countOf(usage.cache_creation, 'ephemeral_1h_input_tokens');
  const own = iterationsIn(usage)
    .filter(({ type }) => type === 'message')
    .map(countsOf);
  const sumOf = (unit: keyof ReturnType<typeof countsOf>) =>
    own.reduce((sum, each) => sum + (each[unit] ?? 0), 0);
  return {
    input_tokens: Math.max(
      countOf(usage, 'input_tokens') + written + countOf(usage, 'cache_read_input_tokens'),
      sumOf('input_tokens'),
    ),
    cache_write_tokens: Math.max(written, sumOf('cache_write_tokens')),
    output_tokens: Math.max(countOf(usage.output_tokens_details, 'thinking_tokens'), sumOf('output_tokens')),
  };
}

const iterationsIn = (usage: unknown): readonly JsonObject[] =>
  isJsonObject(usage) && Array.isArray(usage.iterations) ? usage.iterations.filter(isJsonObject) : [];

/**
 * Whether a usage is at the listed price. Another tier, speed or region has another price: inference in the US costs 1.1 times the
 * list, and a workspace can choose it as its default.
 */
const isListPrice = ({ service_tier, speed, inference_geo }: JsonObject): boolean =>
  [undefined, null, 'standard'].includes(service_tier as string) &&
  [undefined, null, 'standard'].includes(speed as string) &&
  [undefined, null, 'global', 'not_available'].includes(inference_geo as string);
