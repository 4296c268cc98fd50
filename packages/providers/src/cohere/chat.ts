import { judge } from '../bounds/allow-list.ts';
import { apart, compileGroup, compileWith } from '../bounds/compile-group.ts';
import { nestedWithin } from '../bounds/count-text.ts';
import {
  boundInput,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  textShare,
  together,
  unboundedShare,
  unknownShare,
  WHOLE_WINDOW,
} from '../bounds/input-share.ts';
import { isCount, readOutputBound, writeOutputBound } from '../bounds/output-bound.ts';
import { type Dialect, MODEL, NAMES } from '../dialect.ts';
import * as FACTS from '../facts/cohere.ts';
import { isJsonObject, type JsonObject, textOf } from '../json.ts';
import type { Bounded, CallFacts } from '../spend.ts';
import { cohereErrors } from './errors.ts';
import { isCohereError, readCohereAnswer, readCohereStream } from './usage.ts';

/**
 * Chat, v2 and v1 (`cohere-ai` 8.1, V2ChatRequest and ChatRequest). Neither version knows the other's fields.
 * Nucleus sampling and top-k are `p` and `k`.
 */
export const cohereChat: Dialect = {
  id: 'cohere-chat',
  errors: cohereErrors,
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['p'], names: NAMES.topP },
    { at: ['k'], names: NAMES.topK },
    { at: ['stop_sequences'], names: NAMES.stop, list: true },
    { at: ['seed'], names: NAMES.seed },
  ],
  spend: {
    model: ({ model }) => (typeof model === 'string' ? model : undefined),
    streams: ({ stream }) => stream === true,
    boundBody,
    withOutputBound: (body, tokens) => writeOutputBound(body, 'max_tokens', tokens),
    readAnswer: readCohereAnswer,
    readStream: readCohereStream,
    isOwnError: isCohereError,
  },
};

const FIELDS = compileGroup(FACTS.CHAT_FIELDS, {
  messages: apart(messageShare),
  rewritten: apart(rewrittenShare),
  output: apart(readOutputBound),
});

/** The deepest nesting that is accepted, because a body is walked by recursion. No request needs more. */
const DEEPEST = 100;

function boundBody(body: JsonObject, { bytes, facts }: CallFacts): Bounded {
  if (!nestedWithin(body, DEEPEST)) return { unbounded: { param: 'body', reason: 'is nested too deeply' } };
  // Cohere does not bill its template. Each of these parts may be rewritten.
  const { messages, tools, tool_results, documents, response_format, ...rest } = body;
  const share = together([
    { effect: judge(FIELDS, body), extra: 0 },
    textShare(rest),
    shareBelow('messages', shareOfEach(messages ?? [], messageShare)),
    ...[tools, tool_results, documents, response_format].map(rewrittenShare),
  ]);
  const input = boundInput(share, { bytes, facts });
  if ('unbounded' in input) return input;
  const thinking = isJsonObject(body.thinking) ? body.thinking : {};
  const budget = isCount(thinking.token_budget) ? thinking.token_budget : 0;
  const output = readOutputBound({ max_tokens: body.max_tokens }, facts, { minimum: budget + 1 });
  if ('unbounded' in output) return output;
  return {
    bound: {
      inputTokens: input.tokens,
      fees: {},
      output: {
        ...output,
        times: isGrounded(body) ? 2 : 1,
        // Cohere does not document whether `max_tokens` counts thinking, which is on by default.
        coversReasoning: thinking.type === 'disabled' || (!facts.reasoning && thinking.type === undefined),
      },
    },
  };
}

/** Accurate citations may be written in a second pass over the answer. https://docs.cohere.com/docs/rag-citations */
const isGrounded = ({ documents, tool_results, messages }: JsonObject): boolean =>
  [documents, tool_results].some((value) => value !== undefined && value !== null) ||
  (Array.isArray(messages) && messages.some((message) => isJsonObject(message) && message.role === 'tool'));

function messageShare(message: unknown): Share {
  if (!isJsonObject(message)) return unboundedShare('is not an object');
  const { content, tool_calls, ...rest } = message;
  return together([
    textShare(rest),
    rewrittenShare(tool_calls ?? undefined),
    shareBelow('content', shareOfEach(content ?? [], contentShare)),
  ]);
}

function contentShare(content: unknown): Share {
  if (typeof content === 'string') return textShare(content);
  const rule = CONTENT.get(isJsonObject(content) ? textOf(content.type) : '');
  return rule ? rule(content) : unknownShare('the cost of this kind of content is not known');
}

const CONTENT = compileWith(
  FACTS.CONTENT,
  ({ effect }) => (effect === 'harmless' ? textShare : () => WHOLE_WINDOW),
  { rewritten: rewrittenShare },
);
