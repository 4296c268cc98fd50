import type { Group, Matching, Most, Names } from './fact.ts';

/** Fields of generateContent. Names have their one form (`protoName`). */
export const GENERATE_FIELDS = {
  at: '',
  of: 'fields',
  source: '`@google/genai` 3.3, generateContentParametersToMldev; https://ai.google.dev/api/generate-content',
  date: '2026-11-27',
  entries: {
    contents: { effect: 'judged', by: 'content' },
    labels: { effect: 'harmless' },
    model: { effect: 'judged', by: 'sameModel' },
    safetySettings: { effect: 'harmless' },
    serviceTier: { effect: 'judged', by: 'standardPrice' },
    store: { effect: 'harmless' },
    systemInstruction: { effect: 'judged', by: 'content' },
    toolConfig: { effect: 'harmless' },
    tools: { effect: 'judged', by: 'tools' },
    cachedContent: { effect: 'whole window' },
    generationConfig: { effect: 'judged', by: 'generation' },
  },
} as const satisfies Group;

/** Fields of embedContent and of each request of batchEmbedContents. */
export const EMBED_FIELDS = {
  at: '',
  of: 'fields',
  source: '`@google/genai` 3.3, embedContentParametersToMldev; https://ai.google.dev/api/embeddings',
  date: '2026-11-27',
  entries: {
    content: { effect: 'judged', by: 'content' },
    model: { effect: 'judged', by: 'sameModel' },
    outputDimensionality: { effect: 'harmless' },
    taskType: { effect: 'harmless' },
    title: { effect: 'harmless' },
  },
} as const satisfies Group;

/** The hold of an image covers the largest `mediaResolution`. */
export const GENERATION = {
  at: 'generationConfig',
  of: 'fields',
  source: 'https://ai.google.dev/api/generate-content#generationconfig',
  date: '2026-11-27',
  entries: {
    enableEnhancedCivicAnswers: { effect: 'harmless' },
    frequencyPenalty: { effect: 'harmless' },
    logprobs: { effect: 'harmless' },
    mediaResolution: { effect: 'harmless' },
    presencePenalty: { effect: 'harmless' },
    responseJsonSchema: { effect: 'judged', by: 'schema' },
    _responseJsonSchema: { effect: 'judged', by: 'schema' },
    responseLogprobs: { effect: 'harmless' },
    responseMimeType: { effect: 'harmless' },
    responseSchema: { effect: 'judged', by: 'schema' },
    seed: { effect: 'harmless' },
    stopSequences: { effect: 'harmless' },
    temperature: { effect: 'harmless' },
    topK: { effect: 'harmless' },
    topP: { effect: 'harmless' },
    candidateCount: { effect: 'judged', by: 'count' },
    maxOutputTokens: { effect: 'judged', by: 'count' },
    responseModalities: { effect: 'judged', by: 'textOnly' },
    thinkingConfig: { effect: 'judged', by: 'thinking' },
  },
} as const satisfies Group;

export const THINKING = {
  at: 'generationConfig.thinkingConfig',
  of: 'fields',
  source: '`@google/genai` 3.3, dist/genai.d.ts, ThinkingConfig',
  date: '2026-11-27',
  entries: {
    includeThoughts: { effect: 'harmless' },
    thinkingLevel: { effect: 'harmless' },
    thinkingBudget: { effect: 'judged', by: 'budget' },
  },
} as const satisfies Group;

/** Tools, by their field. The caller runs computer use, and the length of the functions that it declares is not published. Tools that Google runs have no maximum of rounds, and some have a fee for each use: no other passes. */
export const TOOLS = {
  at: 'tools[]',
  of: 'fields',
  source: '`@google/genai` 3.3, dist/genai.d.ts, Tool',
  date: '2026-11-27',
  entries: {
    functionDeclarations: { effect: 'judged', by: 'rewritten' },
    computerUse: { effect: 'whole window' },
  },
} as const satisfies Group;

/** Tools that Google runs without a maximum of rounds, some of which have a fee for each use. */
export const UNBOUNDED_TOOLS: Names = {
  source: '`@google/genai` 3.3, dist/genai.d.ts, Tool; https://ai.google.dev/gemini-api/docs/pricing',
  date: '2026-11-28',
  names: [
    ...['googleSearch', 'googleSearchRetrieval', 'googleMaps', 'enterpriseWebSearch', 'parallelAiSearch'],
    ...['codeExecution', 'fileSearch', 'retrieval', 'urlContext', 'mcpServers'],
  ],
};

export const CONTENT = {
  at: 'contents[]',
  of: 'fields',
  source: '`@google/genai` 3.3, dist/genai.d.ts, Content',
  date: '2026-11-27',
  entries: {
    role: { effect: 'harmless' },
    parts: { effect: 'judged', by: 'parts' },
  },
} as const satisfies Group;

export const PART = {
  at: 'contents[].parts[]',
  of: 'fields',
  source: '`@google/genai` 3.3, dist/genai.d.ts, Part; https://ai.google.dev/api/caching#Part',
  date: '2026-11-27',
  entries: {
    audioTranscription: { effect: 'harmless' },
    codeExecutionResult: { effect: 'harmless' },
    executableCode: { effect: 'harmless' },
    fileData: { effect: 'judged', by: 'media' },
    functionCall: { effect: 'judged', by: 'rewritten' },
    functionResponse: { effect: 'judged', by: 'functionResponse' },
    inlineData: { effect: 'judged', by: 'media' },
    mediaProcessing: { effect: 'judged', by: 'media' },
    mediaResolution: { effect: 'judged', by: 'media' },
    partMetadata: { effect: 'harmless' },
    speechMetadata: { effect: 'harmless' },
    text: { effect: 'harmless' },
    thought: { effect: 'harmless' },
    thoughtSignature: { effect: 'harmless' },
    toolCall: { effect: 'judged', by: 'rewritten' },
    toolResponse: { effect: 'judged', by: 'rewritten' },
    videoMetadata: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Gemini 3 takes 280 to 2,240 by its resolution; earlier models cut what is larger than 384 pixels into tiles of 768 × 768, 258 tokens each, after scaling it down to 3,072 × 3,072: 16 tiles. */
export const IMAGE_TOKENS: Most = {
  source:
    'https://ai.google.dev/gemini-api/docs/media-resolution#token-counts, …/docs/tokens#multimodal-tokens',
  date: '2026-11-27',
  most: 16 * 258,
};

/** Fields of Imagen. */
export const PREDICT_FIELDS = {
  at: '',
  of: 'fields',
  source:
    'https://ai.google.dev/gemini-api/docs/imagen, and the fields that `@google/genai` 3.3 sends (generateImages)',
  date: '2026-11-27',
  entries: {
    instances: { effect: 'judged', by: 'instances' },
    parameters: { effect: 'judged', by: 'parameters' },
  },
} as const satisfies Group;

export const PREDICT_INSTANCE = {
  at: 'instances[]',
  of: 'fields',
  source:
    'https://ai.google.dev/gemini-api/docs/imagen, and the fields that `@google/genai` 3.3 sends (generateImages)',
  date: '2026-11-27',
  entries: {
    prompt: { effect: 'harmless' },
  },
} as const satisfies Group;

export const PREDICT_PARAMETERS = {
  at: 'parameters',
  of: 'fields',
  source:
    'https://ai.google.dev/gemini-api/docs/imagen, and the fields that `@google/genai` 3.3 sends (generateImages)',
  date: '2026-11-27',
  entries: {
    aspectRatio: { effect: 'harmless' },
    sampleImageSize: { effect: 'harmless' },
    guidanceScale: { effect: 'harmless' },
    safetySetting: { effect: 'harmless' },
    personGeneration: { effect: 'harmless' },
    language: { effect: 'harmless' },
    includeSafetyAttributes: { effect: 'harmless' },
    includeRaiReason: { effect: 'harmless' },
    outputOptions: { effect: 'harmless' },
    sampleCount: { effect: 'judged', by: 'samples' },
  },
} as const satisfies Group;

/** Headers of Vertex AI that select provisioned or priority capacity. */
export const VERTEX_PRICED_HEADERS: Names = {
  source: 'https://cloud.google.com/vertex-ai/generative-ai/docs/priority-paygo',
  date: '2026-11-22',
  names: ['x-vertex-ai-llm-request-type', 'x-vertex-ai-llm-shared-request-type'],
};

/** Headers of answers of Vertex AI that pass: those of Google's APIs, and of the partners' models. */
export const VERTEX_ANSWER_HEADERS: Names = {
  source: 'recorded answers',
  date: '2026-11-26',
  names: ['x-goog-*', 'x-vertex-*', 'anthropic-*', 'mistral-*'],
};

/** The instructions that Google adds for tools or a format. */
export const DECLARED: Most = {
  source: 'https://ai.google.dev/gemini-api/docs/function-calling; their length is not documented',
  date: '2026-11-21',
  most: 1_024,
};

/** Models that answer in images, sound or video unless the call asks for text. */
export const OTHER_MODALITY: Matching = {
  source: 'https://ai.google.dev/gemini-api/docs/models',
  date: '2026-11-22',
  matching: /image|tts|audio|live|omni|lyria|veo/,
};

/** Tokens that Google adds around turns. The names and braces of the JSON outweigh them. */
export const MARKERS: Most = {
  source: 'https://ai.google.dev/gemini-api/docs/tokens',
  date: '2026-11-21',
  most: 64,
};

/** Fields below which the caller chooses the names. */
export const CALLERS_OWN: Names = {
  source: '`@google/genai` 3.3, the fields of type Record<string, unknown> and those of a Schema',
  date: '2026-11-25',
  names: [
    'args',
    'labels',
    'parameters',
    'parametersJsonSchema',
    'partMetadata',
    'response',
    'responseJsonSchema',
    '_responseJsonSchema',
    'responseSchema',
  ],
};

/** Kinds of sources of a grounded answer whose search is counted. Reading pages (`urlContextMetadata`) costs their tokens only. */
export const COUNTED_SOURCES: Names = {
  source: 'https://ai.google.dev/gemini-api/docs/pricing; `@google/genai` 3.3, GroundingChunk',
  date: '2026-11-26',
  names: ['web', 'maps'],
};
