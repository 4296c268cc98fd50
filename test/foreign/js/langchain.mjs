import { ChatOpenAI } from '@langchain/openai';
import { run } from './cases.mjs';
import { ASKS_WEATHER, called, HELLO, textOf, WEATHER } from './weather.mjs';

const modelOf = (url, retries) =>
  new ChatOpenAI({
    model: 'gpt-4o-mini',
    maxTokens: 100,
    apiKey: 'unused',
    maxRetries: retries ? 2 : 0,
    configuration: { baseURL: url.replace('/chat/completions', '') },
  });

await run({
  plain: async (url, retries) => (await modelOf(url, retries).invoke(HELLO)).content,
  stream: async (url, retries) => textOf(await modelOf(url, retries).stream(HELLO), ({ content }) => content),
  tools: async (url, retries) => {
    const answer = await modelOf(url, retries).bindTools([WEATHER]).invoke(ASKS_WEATHER);
    return called(answer.tool_calls[0].name, answer.tool_calls[0].args);
  },
});
