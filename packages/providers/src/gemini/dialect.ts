import type { Dialect, ModelInPath, Setting } from '../dialect.ts';
import { NAMES, NO_OUTPUT } from '../settings.ts';
import { geminiEmbedSpend, geminiGenerateSpend } from './generate.ts';

const protoJson = { callersOwn: ['responseSchema', 'responseJsonSchema', '_responseJsonSchema', 'labels'] };

const modelInPath = (...repeatedAt: string[][]): ModelInPath => ({
  collections: ['models', 'tunedModels'],
  repeatedAt,
  withMethod: true,
});

const generation = (name: string, names: readonly string[]): Setting => ({
  at: ['generationConfig', name],
  names,
});

/**
 * generateContent and streamGenerateContent: what shapes output stands in `generationConfig`.
 * https://ai.google.dev/api/generate-content#generationconfig
 */
export const geminiGenerate: Dialect = {
  id: 'gemini-generate',
  protoJson,
  modelInPath: modelInPath(['model']),
  settings: [
    generation('maxOutputTokens', NAMES.outputBound),
    generation('temperature', NAMES.temperature),
    generation('topP', NAMES.topP),
    generation('topK', NAMES.topK),
    { ...generation('stopSequences', NAMES.stop), list: true },
    generation('candidateCount', NAMES.count),
    generation('seed', NAMES.seed),
    generation('presencePenalty', NAMES.presencePenalty),
    generation('frequencyPenalty', NAMES.frequencyPenalty),
  ],
  spend: geminiGenerateSpend,
};

/**
 * countTokens, which may hold a whole generateContent request.
 * https://ai.google.dev/api/tokens
 */
export const geminiCountTokens: Dialect = {
  id: 'gemini-count-tokens',
  protoJson,
  modelInPath: modelInPath(['model'], ['generateContentRequest', 'model']),
  settings: NO_OUTPUT,
};

/**
 * embedContent and batchEmbedContents: each request of a batch repeats the model.
 * https://ai.google.dev/api/embeddings
 */
export const geminiEmbed: Dialect = {
  id: 'gemini-embed',
  protoJson,
  modelInPath: modelInPath(['model'], ['requests', '[]', 'model']),
  settings: NO_OUTPUT,
  spend: geminiEmbedSpend,
};
