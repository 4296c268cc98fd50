import { GoogleGenAI } from '@google/genai';
import { run } from './cases.mjs';
import { ASKS_WEATHER, called, DESCRIPTION, HELLO, NAME, SCHEMA, textOf } from './weather.mjs';

const modelsOf = (url) =>
  new GoogleGenAI({
    apiKey: 'unused',
    httpOptions: { baseUrl: url.slice(0, url.indexOf('/v1beta/')), apiVersion: 'v1beta' },
  }).models;
const body = (contents, config = {}) => ({
  model: 'gemini-2.5-flash',
  contents,
  config: { maxOutputTokens: 100, ...config },
});

await run({
  plain: async (url) => (await modelsOf(url).generateContent(body(HELLO))).text,
  stream: async (url) => textOf(await modelsOf(url).generateContentStream(body(HELLO)), ({ text }) => text),
  tools: async (url) => {
    const weather = { name: NAME, description: DESCRIPTION, parametersJsonSchema: SCHEMA };
    const tools = [{ functionDeclarations: [weather] }];
    const { functionCalls } = await modelsOf(url).generateContent(body(ASKS_WEATHER, { tools }));
    return called(functionCalls[0].name, functionCalls[0].args);
  },
});
