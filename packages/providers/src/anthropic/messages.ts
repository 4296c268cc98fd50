import {
  type AllowList,
  allow,
  type Effect,
  harmless,
  judge,
  judgeEach,
  only,
} from '../bounds/allow-list.ts';
import { nestedWithin } from '../bounds/count-text.ts';
import {
  boundInput,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  together,
  unboundedShare,
} from '../bounds/input-share.ts';
import { isCount, readOutputBound, writeOutputBound } from '../bounds/output-bound.ts';
import { type Dialect, MODEL, NAMES, NO_OUTPUT } from '../dialect.ts';
import { isJsonObject, type JsonObject, textOf } from '../json.ts';
import type { Bounded, CallFacts, DialectSpend, ModelFacts } from '../spend.ts';
import { anthropicContent, anthropicTools } from './input.ts';
import { readAnthropicAnswer, readAnthropicStream } from './usage.ts';

/** Token counting takes a message's input without the fields that shape its output. */
export const anthropicCountTokens: Dialect = {
  id: 'anthropic-count-tokens',
  settings: [MODEL, ...NO_OUTPUT],
};

/** How messages are metered (`@anthropic-ai/sdk` 1.11, resources/messages and resources/beta/messages). */
const SPEND: DialectSpend = {
  model: ({ model }) => (typeof model === 'string' ? model : undefined),
  streams: ({ stream }) => stream === true,
  boundBody,
  withOutputBound: (body, tokens) => writeOutputBound(body, 'max_tokens', tokens),
  atStandardPrice,
  // Betas may have other prices (a longer context, fast mode), use other models, or run code that is paid by the hour.
  pricedHeaders: ['anthropic-beta', 'x-anthropic-beta'],
  harmlessHeaderValues: {
    'anthropic-beta': new Set([
      'computer-use-2024-10-22',
      'computer-use-2025-01-24',
      'computer-use-2025-11-24',
      'context-management-2025-06-27',
      'effort-2025-11-24',
      'extended-cache-ttl-2025-04-11',
      'files-api-2025-04-14',
      'fine-grained-tool-streaming-2025-05-14',
      'interleaved-thinking-2025-05-14',
      'model-context-window-exceeded-2025-08-26',
      'output-128k-2025-02-19',
      'pdfs-2024-09-25',
      'prompt-caching-2024-07-31',
      'structured-outputs-2025-11-13',
      'thinking-display-updates-2026-08-18',
      'thinking-token-count-2026-05-13',
      'token-counting-2024-11-01',
      'token-efficient-tools-2025-02-19',
    ]),
  },
  readAnswer: readAnthropicAnswer,
  readStream: readAnthropicStream,
  isOwnError: (answer) => isJsonObject(answer) && answer.type === 'error' && isJsonObject(answer.error),
};

/** Messages (`@anthropic-ai/sdk`, resources/messages). The provider refuses unknown fields. */
export const anthropicMessages: Dialect = {
  id: 'anthropic-messages',
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['stop_sequences'], names: NAMES.stop, list: true },
  ],
  spend: SPEND,
};

const FIELDS: AllowList = allow(
  harmless(
    'cache_control', // what it writes to the cache is priced as dearest input, one hour included
    'diagnostics',
    'messages', // judged block by block
    'metadata',
    'model',
    'max_tokens',
    'service_tier', // forced, see atStandardPrice
    'speed',
    'stop_sequences',
    'stream',
    'system',
    'temperature',
    'tool_choice',
    'tools',
    'top_k',
    'top_p',
  ),
  {
    container: { unbounded: 'code is paid for by the hour' },
    context_management: (value) => editing(value),
    fallbacks: { unbounded: 'the models it names have other prices' },
    inference_geo: only('inference in one region costs 1.1 times the listed price', 'global'),
    mcp_servers: { unbounded: 'what the servers answer has no stated maximum' },
    output_config: (value) => judgeObject(harmless('effort', 'format'), value),
    output_format: 'harmless',
    thinking: (value) => judgeThinking(value),
  },
);

/** Deeper than any request needs; what walks a body walks it by recursion. */
const DEEPEST = 100;
/** Structured output adds a system prompt of its own, of unstated length. */
const FORMAT_PROMPT = 2_048;
/** Room left to answer in, after a thinking budget, when the call has no bound of its own. */
const ANSWER = 4_096;

function boundBody(body: JsonObject, { bytes, facts }: CallFacts): Bounded {
  if (!nestedWithin(body, DEEPEST)) return { unbounded: { param: 'body', reason: 'is nested too deeply' } };
  const tools = anthropicTools(body.tools);
  const input = boundInput(
    together([
      { effect: judge(FIELDS, body), extra: 0 },
      shareBelow('tools', tools.share),
      spokenShare(body),
    ]),
    { bytes, facts },
    { fixed: FIXED, passes: tools.passes },
  );
  if ('unbounded' in input) return input;
  const output = outputOf(body, facts);
  if ('unbounded' in output) return output;
  return {
    bound: {
      inputTokens: input.tokens,
      fees: tools.fees,
      // `max_tokens` may bound each turn of a server tool alone, so each is held.
      output: { ...output, times: tools.passes, coversReasoning: true },
    },
  };
}

/** Markers around the turns and a default line or two; the names and braces of the JSON outweigh them. */
const FIXED = 64;

/** All that is said to the model, but for its tools. */
function spokenShare({ model, messages, system, output_config, output_format }: JsonObject): Share {
  // Other providers speak this dialect too, with models whose images have no stated maximum.
  const readsImages = typeof model === 'string' && model.startsWith('claude-');
  const format = isJsonObject(output_config) ? (output_config.format ?? output_format) : output_format;
  return together([
    shareBelow('system', anthropicContent(system, readsImages)),
    shareBelow(
      'messages',
      shareOfEach(messages ?? [], (message) => messageShare(message, readsImages)),
    ),
    format === undefined || format === null
      ? { effect: 'harmless', extra: 0 }
      : together([rewrittenShare(format), { effect: 'harmless', extra: FORMAT_PROMPT }]),
  ]);
}

function messageShare(message: unknown, readsImages: boolean): Share {
  if (!isJsonObject(message)) return unboundedShare('is not an object');
  const effect = judge(harmless('role', 'content'), message);
  return together([
    { effect, extra: 0 },
    shareBelow('content', anthropicContent(message.content, readsImages)),
  ]);
}

/** `max_tokens` covers thinking; 0 writes the cache and answers nothing. */
function outputOf(body: JsonObject, facts: ModelFacts) {
  const { max_tokens, thinking } = body;
  if (max_tokens === 0) return { asked: 0, least: 0 };
  const budget = isJsonObject(thinking) && isCount(thinking.budget_tokens) ? thinking.budget_tokens : 0;
  const read = readOutputBound({ max_tokens }, facts, { minimum: budget + 1 });
  if ('unbounded' in read || (max_tokens !== undefined && max_tokens !== null)) return read;
  const asked = Math.min(Math.max(read.asked, budget + ANSWER), facts.maxOutput ?? Number.MAX_SAFE_INTEGER);
  return { asked, least: Math.min(asked, Math.max(read.least, budget + 1)) };
}

function judgeThinking(value: unknown): Effect {
  if (!isJsonObject(value)) return { unbounded: 'is not an object' };
  return judge(
    allow(harmless('display'), {
      type: only('is no known kind of thinking', 'enabled', 'disabled', 'adaptive', 'between_tools'),
      budget_tokens: (budget) =>
        isCount(budget) ? 'harmless' : { unbounded: 'is not a whole number above 0' },
    }),
    value,
  );
}

/** Clearing only shortens the input; compaction is a call of its own, counted apart. */
const editing = (value: unknown): Effect =>
  judgeObject(
    allow({
      edits: (edits) =>
        judgeEach(edits, ({ type }) =>
          ['clear_tool_uses_20250919', 'clear_thinking_20251015'].includes(textOf(type))
            ? 'harmless'
            : { unbounded: 'what this edit can cost is not known', at: 'type' },
        ),
    }),
    value,
  );

const judgeObject = (list: AllowList, value: unknown): Effect =>
  isJsonObject(value) ? judge(list, value) : { unbounded: 'is not an object' };

/**
 * Never priority capacity, never fast mode. Claude models alone know `standard_only`; at other providers that
 * speak this dialect an omitted tier is the standard one.
 */
function atStandardPrice({ service_tier: _tier, speed: _speed, ...body }: JsonObject): JsonObject {
  const isClaude = typeof body.model === 'string' && body.model.startsWith('claude-');
  return isClaude ? { ...body, service_tier: 'standard_only' } : body;
}
