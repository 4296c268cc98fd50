import { anthropicThinking } from '../anthropic/fields.ts';
import { IMAGE_TOKENS, TOOL_PROMPT } from '../anthropic/input.ts';
import { anthropicOutput, DEEPEST, FORMAT_PROMPT } from '../anthropic/messages.ts';
import { allow, harmless, judge, only } from '../bounds/allow-list.ts';
import { nestedWithin } from '../bounds/count-text.ts';
import {
  boundInput,
  NOTHING,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  textShare,
  together,
  unboundedShare,
  WHOLE_WINDOW,
} from '../bounds/input-share.ts';
import { type Dialect, NAMES } from '../dialect.ts';
import { countOf, isJsonObject, type JsonObject, objectIn, readObject } from '../json.ts';
import { type Bounded, type CallFacts, countsRead, type EventReader } from '../spend.ts';
import { hasText } from '../usage/content.ts';
import { CONVERSE_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import type { Statement } from '../usage/record.ts';
import { awsErrors, BEDROCK_MODEL, bedrockModel, isAwsError, isClaude, PRICED_HEADERS } from './call.ts';

/**
 * Converse and ConverseStream, which serve models of all makers (`@aws-sdk/client-bedrock-runtime` 3.1164, models_0).
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 */
export const bedrockConverse: Dialect = {
  id: 'bedrock-converse',
  errors: awsErrors,
  settings: [
    { at: ['inferenceConfig', 'maxTokens'], names: NAMES.outputBound },
    { at: ['inferenceConfig', 'temperature'], names: NAMES.temperature },
    { at: ['inferenceConfig', 'topP'], names: NAMES.topP },
    { at: ['inferenceConfig', 'stopSequences'], names: NAMES.stop, list: true },
  ],
  modelInPath: BEDROCK_MODEL,
  spend: {
    model: (_, path) => bedrockModel(path),
    streams: (_, path) => /\/converse-stream\/?$/i.test(path),
    boundBody,
    withOutputBound: (body, tokens) => ({
      ...body,
      inferenceConfig: { ...objectIn(body, 'inferenceConfig'), maxTokens: tokens },
    }),
    atStandardPrice: ({ serviceTier: _tier, performanceConfig: _performance, ...body }) => body,
    pricedHeaders: PRICED_HEADERS,
    readAnswer: (answer) => {
      if (!isJsonObject(answer)) return undefined;
      const { content } = objectIn(objectIn(answer, 'output'), 'message');
      return { ...stated(answer), content: hasText(content) ? 'written' : undefined };
    },
    readStream: readConverseStream,
    isOwnError: isAwsError,
  },
};

const FIELDS = allow(
  harmless('messages', 'system', 'toolConfig', 'additionalModelResponseFieldPaths', 'requestMetadata'),
  {
    additionalModelRequestFields: (value) => judgeObject(MODEL_FIELDS, value),
    guardrailConfig: { unbounded: 'guardrails have a price of their own' },
    inferenceConfig: (value) =>
      judgeObject(harmless('maxTokens', 'temperature', 'topP', 'stopSequences'), value),
    outputConfig: (value) => judgeObject(harmless('textFormat', 'effort'), value),
  },
);

/** Fields of Claude. https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html */
const MODEL_FIELDS = allow(harmless('top_k'), { thinking: anthropicThinking });

const judgeObject = (list: Parameters<typeof judge>[0], value: unknown) =>
  isJsonObject(value) ? judge(list, value) : { unbounded: 'is not an object' };

function boundBody(body: JsonObject, { path, bytes, facts }: CallFacts): Bounded {
  if (!nestedWithin(body, DEEPEST)) return { unbounded: { param: 'body', reason: 'is nested too deeply' } };
  const claude = isClaude(bedrockModel(path));
  const input = boundInput(
    together([
      { effect: judge(FIELDS, body), extra: 0 },
      shareBelow('toolConfig', toolsShare(body.toolConfig)),
      shareBelow('system', contentShare(body.system, claude)),
      shareBelow('messages', messagesShare(body.messages, claude)),
      shareBelow('outputConfig', formatShare(body.outputConfig)),
    ]),
    { bytes, facts },
    { fixed: FIXED },
  );
  if ('unbounded' in input) return input;
  const { thinking } = objectIn(body, 'additionalModelRequestFields');
  const output = anthropicOutput(
    { max_tokens: objectIn(body, 'inferenceConfig').maxTokens, thinking },
    facts,
  );
  if ('unbounded' in output)
    return { unbounded: { ...output.unbounded, param: 'inferenceConfig.maxTokens' } };
  return {
    bound: { inputTokens: input.tokens, fees: {}, output: { ...output, times: 1, coversReasoning: true } },
  };
}

/** Covers markers around turns. The names and braces of the JSON outweigh them. */
const FIXED = 64;

const messagesShare = (messages: unknown, claude: boolean): Share =>
  messages === undefined || messages === null
    ? NOTHING
    : shareOfEach(messages, (message) => {
        if (!isJsonObject(message)) return unboundedShare('is not an object');
        const effect = judge(harmless('role', 'content'), message);
        return together([{ effect, extra: 0 }, shareBelow('content', contentShare(message.content, claude))]);
      });

type BlockRule = (value: unknown, claude: boolean) => Share;

const asText: BlockRule = (value) => textShare(value);
const asWindow: BlockRule = () => WHOLE_WINDOW;

/** ContentBlock, SystemContentBlock and ToolResultContentBlock: each block has one of these fields. */
const BLOCKS: ReadonlyMap<string, BlockRule> = new Map<string, BlockRule>([
  ['text', asText],
  ['json', rewrittenShare],
  ['reasoningContent', asText],
  ['citationsContent', asText],
  ['searchResult', asText],
  ['toolUse', rewrittenShare],
  ['toolResult', (value, claude) => toolResultShare(value, claude)],
  ['image', (value, claude) => (claude ? imageShare(value) : WHOLE_WINDOW)],
  ['document', asWindow],
  ['video', asWindow],
  ['audio', asWindow],
  ['cachePoint', (value) => ({ effect: judgeObject(CACHE_POINT, value), extra: 0 })],
]);

/** The price list has no rate for tokens that are cached for an hour. */
const CACHE_POINT = allow(harmless('type'), {
  ttl: only('the price list has no rate for tokens that are cached for an hour', '5m'),
});

function contentShare(content: unknown, claude: boolean): Share {
  if (content === undefined || content === null) return NOTHING;
  if (!Array.isArray(content)) return unboundedShare('is not a list');
  return shareOfEach(content, (block) => {
    if (!isJsonObject(block)) return unboundedShare('is not an object');
    const parts = Object.entries(block).map(([kind, value]) =>
      shareBelow(
        kind,
        BLOCKS.get(kind)?.(value, claude) ?? unboundedShare('the cost of this kind of block is not known'),
      ),
    );
    return together(parts);
  });
}

function toolResultShare(value: unknown, claude: boolean): Share {
  if (!isJsonObject(value)) return unboundedShare('is not an object');
  const effect = judge(harmless('toolUseId', 'content', 'status', 'type'), value);
  return together([{ effect, extra: 0 }, shareBelow('content', contentShare(value.content, claude))]);
}

/** Claude's images have a maximum, wherever their bytes are. */
function imageShare(value: unknown): Share {
  const { bytes } = objectIn(isJsonObject(value) ? value : {}, 'source');
  return { effect: 'harmless', extra: IMAGE_TOKENS - (typeof bytes === 'string' ? bytes.length : 0) };
}

function toolsShare(config: unknown): Share {
  if (config === undefined || config === null) return NOTHING;
  if (!isJsonObject(config)) return unboundedShare('is not an object');
  const { tools } = config;
  const shares = shareOfEach(tools ?? [], (tool) => {
    if (!isJsonObject(tool)) return unboundedShare('is not an object');
    const list = allow(harmless('toolSpec'), {
      cachePoint: (value) => judgeObject(CACHE_POINT, value),
      systemTool: { unbounded: 'the cost of this tool has no stated maximum' },
    });
    return together([{ effect: judge(list, tool), extra: 0 }, rewrittenShare(tool.toolSpec)]);
  });
  const effect = judge(harmless('tools', 'toolChoice'), config);
  return together([{ effect, extra: TOOL_PROMPT }, shareBelow('tools', shares)]);
}

/** Structured output adds a system prompt whose length is not documented. */
const formatShare = (config: unknown): Share =>
  isJsonObject(config) && config.textFormat !== undefined && config.textFormat !== null
    ? together([rewrittenShare(config.textFormat), { effect: 'harmless', extra: FORMAT_PROMPT }])
    : NOTHING;

/**
 * A stream reports its usage in `metadata`, after `messageStop`. Exceptions arrive as events, too.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 */
function readConverseStream(): EventReader {
  let stopped = false;
  let failed = false;
  let written = false;
  let ended = false;
  return {
    event: (data, name) => {
      stopped ||= name === 'messageStop';
      failed ||= name?.endsWith('Exception') === true;
      if (name === 'metadata') {
        ended = true;
        return stated(readObject(data) ?? {});
      }
      if (written || (name !== 'contentBlockStart' && name !== 'contentBlockDelta')) return undefined;
      const { start, delta } = readObject(data) ?? {};
      written = hasText(start) || hasText(delta);
      return written ? { content: 'written' } : undefined;
    },
    isWhole: () => stopped && !failed && ended,
  };
}

/**
 * `inputTokens` exclude tokens read from and written to the cache
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html). A guardrail has a price of its own, and its
 * trace shows that it ran.
 */
function stated({ usage, trace, serviceTier, performanceConfig }: JsonObject): Statement {
  const isListPrice =
    trace === undefined &&
    [undefined, 'default'].includes(fieldOf(serviceTier, 'type')) &&
    [undefined, 'standard'].includes(fieldOf(performanceConfig, 'latency'));
  if (!isJsonObject(usage) || !isListPrice) return { usage: 'unreadable' };
  if (typeof usage.inputTokens !== 'number' || typeof usage.outputTokens !== 'number')
    return { usage: 'unreadable' };
  const written = larger(usage, 'cacheWriteInputTokens', 'cacheWriteInputTokenCount');
  const read = larger(usage, 'cacheReadInputTokens', 'cacheReadInputTokenCount');
  const details: readonly unknown[] = Array.isArray(usage.cacheDetails) ? usage.cacheDetails : [];
  const sumOf = (list: readonly unknown[]) =>
    list.reduce<number>((sum, detail) => sum + countOf(detail, 'inputTokens'), 0);
  const all = sumOf(details);
  const long = sumOf(details.filter((detail) => fieldOf(detail, 'ttl') !== '5m'));
  const counts = countsRead({
    input_tokens: countOf(usage, 'inputTokens') + written + read,
    cache_write_tokens: written,
    cache_write_1h_tokens: long,
    cache_read_tokens: read,
    output_tokens: countOf(usage, 'outputTokens'),
    total_tokens: countOf(usage, 'totalTokens'),
  });
  const parts = { input_tokens: countOf(usage, 'inputTokens') + all + read, cache_write_tokens: all };
  return { usage: counts, parts, unknown: unknownCounts(usage, CONVERSE_COUNTS) };
}

/** The larger of two names of one count. */
const larger = (usage: JsonObject, ...[a, b]: readonly [string, string]): number =>
  Math.max(countOf(usage, a), countOf(usage, b));

const fieldOf = (value: unknown, field: string): string | undefined =>
  isJsonObject(value) && typeof value[field] === 'string' ? value[field] : undefined;
