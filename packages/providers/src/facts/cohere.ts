import type { Group, Most } from './fact.ts';

/** Fields of chat, v2 and v1. Neither version knows the fields of the other. */
export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: '`cohere-ai` 8.1, V2ChatRequest and ChatRequest',
  date: '2026-11-27',
  entries: {
    chat_history: { effect: 'harmless' },
    citation_options: { effect: 'harmless' },
    citation_quality: { effect: 'harmless' },
    documents: { effect: 'judged', by: 'rewritten' },
    force_single_step: { effect: 'harmless' },
    frequency_penalty: { effect: 'harmless' },
    k: { effect: 'harmless' },
    logprobs: { effect: 'harmless' },
    max_input_tokens: { effect: 'harmless' },
    max_tokens: { effect: 'judged', by: 'output' },
    message: { effect: 'harmless' },
    messages: { effect: 'judged', by: 'messages' },
    model: { effect: 'harmless' },
    p: { effect: 'harmless' },
    preamble: { effect: 'harmless' },
    presence_penalty: { effect: 'harmless' },
    priority: { effect: 'harmless' },
    prompt_truncation: { effect: 'harmless' },
    raw_prompting: { effect: 'harmless' },
    response_format: { effect: 'judged', by: 'rewritten' },
    safety_mode: { effect: 'harmless' },
    seed: { effect: 'harmless' },
    stop_sequences: { effect: 'harmless' },
    stream: { effect: 'harmless' },
    strict_tools: { effect: 'harmless' },
    temperature: { effect: 'harmless' },
    thinking: { effect: 'judged', by: 'output' },
    tool_choice: { effect: 'harmless' },
    tool_results: { effect: 'judged', by: 'rewritten' },
    tools: { effect: 'judged', by: 'rewritten' },
    connectors: {
      effect: 'refused',
      reason: 'their results have no stated maximum, and searches have a fee',
    },
    conversation_id: { effect: 'whole window' },
    search_queries_only: {
      effect: 'harmless',
      values: [false],
      reason: 'max_tokens is not documented to bound the queries that it writes',
    },
  },
} as const satisfies Group;

/** Kinds of content. The API states no maximum for an image. */
export const CONTENT = {
  at: 'messages[].content[]',
  of: 'kinds',
  source: '`cohere-ai` 8.1, Content and ToolContent',
  date: '2026-11-27',
  entries: {
    text: { effect: 'harmless' },
    thinking: { effect: 'harmless' },
    document: { effect: 'judged', by: 'rewritten' },
    image_url: { effect: 'whole window' },
  },
} as const satisfies Group;

export const EMBED_FIELDS = {
  at: '',
  of: 'fields',
  source: '`cohere-ai` 8.1, V2EmbedRequest and EmbedRequest',
  date: '2026-11-27',
  entries: {
    embedding_types: { effect: 'harmless' },
    input_type: { effect: 'harmless' },
    max_tokens: { effect: 'harmless' },
    model: { effect: 'harmless' },
    output_dimension: { effect: 'harmless' },
    priority: { effect: 'harmless' },
    texts: { effect: 'harmless' },
    truncate: { effect: 'harmless' },
    images: { effect: 'refused', reason: 'tokens of images have another price' },
    inputs: { effect: 'judged', by: 'inputs' },
  },
} as const satisfies Group;

export const RERANK_FIELDS = {
  at: '',
  of: 'fields',
  source: '`cohere-ai` 8.1, V2RerankRequest and RerankRequest',
  date: '2026-11-27',
  entries: {
    documents: { effect: 'judged', by: 'documents' },
    max_chunks_per_doc: { effect: 'harmless' },
    max_tokens_per_doc: { effect: 'harmless' },
    model: { effect: 'harmless' },
    priority: { effect: 'harmless' },
    query: { effect: 'judged', by: 'documents' },
    rank_fields: { effect: 'harmless' },
    return_documents: { effect: 'harmless' },
    top_n: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Documents of one search, which is what a rerank costs. */
export const SEARCH_DOCUMENTS: Most = {
  source: 'https://cohere.com/pricing, https://docs.cohere.com/docs/how-does-cohere-pricing-work',
  date: '2026-11-21',
  most: 100,
};

/** Tokens of a document with its query. A longer one is split into chunks, and each chunk counts as a document. */
export const CHUNK_TOKENS: Most = {
  source: 'https://cohere.com/pricing, https://docs.cohere.com/docs/how-does-cohere-pricing-work',
  date: '2026-11-21',
  most: 500,
};
