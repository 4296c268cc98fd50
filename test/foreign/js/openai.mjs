import OpenAI from 'openai';
import { run } from './cases.mjs';
import { ASKS_WEATHER, called, HELLO, textOf, WEATHER } from './weather.mjs';

function ask(url, retries, content, body = {}) {
  const options = retries ? {} : { maxRetries: 0 };
  const client = new OpenAI({ baseURL: url.replace('/chat/completions', ''), apiKey: 'unused', ...options });
  const messages = [{ role: 'user', content }];
  return client.chat.completions.create({ model: 'gpt-4o-mini', max_tokens: 100, messages, ...body });
}

await run({
  plain: async (url, retries) => (await ask(url, retries, HELLO)).choices[0].message.content,
  stream: async (url, retries) =>
    textOf(await ask(url, retries, HELLO, { stream: true }), ({ choices }) => choices[0]?.delta.content),
  tools: async (url, retries) => {
    const { choices } = await ask(url, retries, ASKS_WEATHER, { tools: [WEATHER] });
    const call = choices[0].message.tool_calls[0].function;
    return called(call.name, call.arguments);
  },
});
