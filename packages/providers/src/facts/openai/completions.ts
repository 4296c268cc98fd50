import type { Group } from '../fact.ts';

/** Fields of completions that chat completions do not have. If an echo counts as output, it has no bound. */
export const COMPLETION_FIELDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/completions.d.ts',
  date: '2026-11-27',
  entries: {
    suffix: { effect: 'harmless' },
    prompt: { effect: 'judged', by: 'prompt' },
    echo: { effect: 'harmless', values: [false], reason: 'the echo may count as output' },
  },
} as const satisfies Group;

/** OpenAI counts a prompt once, echoed or not, and writes `best_of` completions to return `n`. */
export const OPENAI_COMPLETION_FIELDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/completions.d.ts',
  date: '2026-11-27',
  entries: {
    echo: { effect: 'harmless' },
    best_of: { effect: 'judged', by: 'bestOf' },
  },
} as const satisfies Group;

/** Fields of embeddings. Shape and type of vectors are free. */
export const EMBEDDING_FIELDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/embeddings.d.ts',
  date: '2026-11-27',
  entries: {
    model: { effect: 'harmless' },
    input: { effect: 'judged', by: 'prompt' },
    dimensions: { effect: 'harmless' },
    encoding_format: { effect: 'harmless' },
    user: { effect: 'harmless' },
    metadata: { effect: 'harmless', source: '`@mistralai/mistralai`, embeddingrequest' },
    output_dimension: { effect: 'harmless', source: '`@mistralai/mistralai`, embeddingrequest' },
    output_dtype: { effect: 'harmless', source: '`@mistralai/mistralai`, embeddingrequest' },
  },
} as const satisfies Group;

/** Fields of speech. Models that are priced by characters ignore `instructions`. */
export const SPEECH_FIELDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/audio/speech.d.ts, SpeechCreateParams',
  date: '2026-11-27',
  entries: {
    model: { effect: 'harmless' },
    input: { effect: 'judged', by: 'characters' },
    voice: { effect: 'harmless' },
    response_format: { effect: 'harmless' },
    speed: { effect: 'harmless' },
    instructions: { effect: 'harmless' },
    sample_rate: { effect: 'harmless', source: '`groq-sdk` 1.6, resources/audio/speech.d.ts' },
    stream_format: { effect: 'harmless', values: ['audio'], reason: 'is not a stream of sound' },
  },
} as const satisfies Group;
