import { below, judge, judgeEach } from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
import { nestedWithin } from '../bounds/count-text.ts';
import { boundInput, textShare, together } from '../bounds/input-share.ts';
import { isCount } from '../bounds/output-bound.ts';
import { type Dialect, MODEL, NO_OUTPUT } from '../dialect.ts';
import * as FACTS from '../facts/cohere.ts';
import type { JsonObject } from '../json.ts';
import type { Bounded, CallFacts } from '../spend.ts';
import { cohereErrors } from './errors.ts';
import { isCohereError, readCohereAnswer } from './usage.ts';

const shared = {
  model: ({ model }: JsonObject) => (typeof model === 'string' ? model : undefined),
  streams: () => false,
  readAnswer: readCohereAnswer,
  isOwnError: isCohereError,
};

/** Embed, v2 and v1 (V2EmbedRequest, EmbedRequest). */
export const cohereEmbed: Dialect = {
  id: 'cohere-embed',
  errors: cohereErrors,
  settings: [MODEL, ...NO_OUTPUT],
  spend: { ...shared, boundBody: boundEmbed },
};

/** Rerank, v2 and v1 (V2RerankRequest, RerankRequest). Other vendors speak it, too. */
export const cohereRerank: Dialect = {
  id: 'cohere-rerank',
  errors: cohereErrors,
  settings: [MODEL, ...NO_OUTPUT],
  spend: { ...shared, least: { query: 'x', documents: ['x'] }, boundBody: boundRerank },
};

const EMBED_FIELDS = compileGroup(FACTS.EMBED_FIELDS, {
  inputs: (inputs) =>
    judgeEach(inputs, ({ content }) =>
      below(
        'content',
        judgeEach(content, ({ type }) =>
          type === 'text' ? 'harmless' : { unbounded: FACTS.EMBED_FIELDS.entries.images.reason },
        ),
      ),
    ),
});

const RERANK_FIELDS = compileGroup(FACTS.RERANK_FIELDS, { documents: apart(boundRerank) });

function boundEmbed(body: JsonObject, { bytes, facts }: CallFacts): Bounded {
  if (!nestedWithin(body, 10)) return { unbounded: { param: 'body', reason: 'is nested too deeply' } };
  const share = together([{ effect: judge(EMBED_FIELDS, body), extra: 0 }, textShare(body)]);
  // The window bounds one text, and a call may have many.
  const input = boundInput(share, { bytes, facts: { ...facts, contextWindow: undefined } });
  return 'unbounded' in input ? input : { bound: { inputTokens: input.tokens, fees: {}, output: undefined } };
}

const { most: SEARCH_DOCUMENTS } = FACTS.SEARCH_DOCUMENTS;
const { most: CHUNK_TOKENS } = FACTS.CHUNK_TOKENS;

function boundRerank(body: JsonObject, { bytes, facts }: CallFacts): Bounded {
  if (!nestedWithin(body, 10)) return { unbounded: { param: 'body', reason: 'is nested too deeply' } };
  const { query, documents } = body;
  const share = together([{ effect: judge(RERANK_FIELDS, body), extra: 0 }, textShare(body)]);
  const whole = boundInput(share, { bytes, facts: { ...facts, contextWindow: undefined } });
  if ('unbounded' in whole) return whole;
  if (typeof query !== 'string') return { unbounded: { param: 'query', reason: 'is not text' } };
  if (!Array.isArray(documents)) return { unbounded: { param: 'documents', reason: 'is not a list' } };
  const room = CHUNK_TOKENS - mostTokens(query);
  if (!isCount(room))
    return {
      unbounded: { param: 'query', reason: 'is so long that the chunks of documents cannot be counted' },
    };
  const chunks = documents.reduce<number>(
    (sum, each) => sum + Math.max(1, Math.ceil(mostTokens(each) / room)),
    0,
  );
  return {
    bound: {
      // Other vendors charge for tokens: those of the query with each document.
      inputTokens: whole.tokens + documents.length * mostTokens(query),
      fees: { rerank_searches: Math.max(1, Math.ceil(chunks / SEARCH_DOCUMENTS)) },
      output: undefined,
    },
  };
}

const mostTokens = (value: unknown): number =>
  Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value)) + textShare(value).extra;
