import { geminiCountTokens, geminiEmbed, geminiGenerate } from '../gemini/dialect.ts';
import { geminiOpenaiChat } from '../openai/chat-dialect.ts';
import { googleEmbeddings } from '../openai/embeddings-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/**
 * https://ai.google.dev/api; the `@google/genai` SDK's api client (base URL, header, `{model}:method` paths).
 * The first segment is the API's version: v1, v1beta or v1alpha.
 * The endpoints that follow OpenAI are documented with a bearer key: https://ai.google.dev/gemini-api/docs/openai
 */
export const google: Provider = {
  id: 'google',
  baseUrl: 'https://generativelanguage.googleapis.com',
  credential: { header: 'x-goog-api-key' },
  routes: [
    { path: '/*/models/*:generateContent', dialect: geminiGenerate },
    { path: '/*/models/*:streamGenerateContent', dialect: geminiGenerate },
    { path: '/*/tunedModels/*:generateContent', dialect: geminiGenerate },
    { path: '/*/tunedModels/*:streamGenerateContent', dialect: geminiGenerate },
    { path: '/*/models/*:countTokens', dialect: geminiCountTokens },
    { path: '/*/models/*:embedContent', dialect: geminiEmbed },
    { path: '/*/models/*:batchEmbedContents', dialect: geminiEmbed },
    { path: '/*/openai/chat/completions', dialect: geminiOpenaiChat, credential: BEARER },
    { path: '/*/openai/embeddings', dialect: googleEmbeddings, credential: BEARER },
  ],
  free: [
    { method: 'GET', path: '/*/models' },
    { method: 'GET', path: '/*/models/*' },
    { method: 'POST', path: '/*/models/*:countTokens' },
    { method: 'GET', path: '/*/openai/models' },
    { method: 'GET', path: '/*/openai/models/*' },
  ],
};
