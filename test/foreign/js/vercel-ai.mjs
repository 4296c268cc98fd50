// Runs the cases of the environment variable CASES with the Vercel AI SDK and the provider that its argument names, and
// prints one line of JSON for each: its answer, or its error.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createCohere } from '@ai-sdk/cohere';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createGroq } from '@ai-sdk/groq';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText, tool } from 'ai';
import { z } from 'zod';
import { run } from './cases.mjs';

const apiKey = 'unused';
const before = (url, part) => url.slice(0, url.indexOf(part));

const MODELS = {
  openai: (url) => createOpenAI({ baseURL: before(url, '/chat/'), apiKey }).chat('gpt-4o-mini'),
  anthropic: (url) => createAnthropic({ baseURL: before(url, '/messages'), apiKey })('claude-haiku-4-5'),
  google: (url) => createGoogleGenerativeAI({ baseURL: before(url, '/models/'), apiKey })('gemini-2.5-flash'),
  cohere: (url) => createCohere({ baseURL: before(url, '/chat'), apiKey })('command-a-03-2025'),
  groq: (url) => createGroq({ baseURL: before(url, '/chat/'), apiKey })('llama-3.3-70b-versatile'),
  mistral: (url) => createMistral({ baseURL: before(url, '/chat/'), apiKey })('mistral-small-latest'),
};

const model = MODELS[process.argv[2]];
const options = (retries) => ({ maxOutputTokens: 100, ...(retries ? {} : { maxRetries: 0 }) });

const does = {
  async plain(url, retries) {
    return (await generateText({ model: model(url), prompt: 'Hello', ...options(retries) })).text;
  },
  async stream(url, retries) {
    let thrown;
    const onError = ({ error }) => {
      thrown = error;
    };
    const { textStream } = streamText({ model: model(url), prompt: 'Hello', onError, ...options(retries) });
    let text = '';
    for await (const part of textStream) text += part;
    if (thrown) throw thrown;
    return text;
  },
  async tools(url, retries) {
    const weather = tool({
      description: 'Current weather of a city',
      inputSchema: z.object({ city: z.string() }),
    });
    const prompt = 'What is the weather in Paris?';
    const { toolCalls } = await generateText({
      ...{ model: model(url), prompt, tools: { get_weather: weather } },
      ...options(retries),
    });
    return `${toolCalls[0].toolName}(${toolCalls[0].input.city})`;
  },
};

await run(does);
