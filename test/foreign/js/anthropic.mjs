import Anthropic from '@anthropic-ai/sdk';
import { run } from './cases.mjs';
import { ASKS_WEATHER, called, DESCRIPTION, HELLO, NAME, SCHEMA, textOf } from './weather.mjs';

const messagesOf = (url, retries) =>
  new Anthropic({
    baseURL: url.replace('/v1/messages', ''),
    apiKey: 'unused',
    ...(retries ? {} : { maxRetries: 0 }),
  }).messages;
const body = (content) => ({
  model: 'claude-haiku-4-5',
  max_tokens: 100,
  messages: [{ role: 'user', content }],
});

await run({
  plain: async (url, retries) => (await messagesOf(url, retries).create(body(HELLO))).content[0].text,
  stream: (url, retries) =>
    textOf(messagesOf(url, retries).stream(body(HELLO)), ({ delta }) =>
      delta?.type === 'text_delta' ? delta.text : '',
    ),
  tools: async (url, retries) => {
    const tools = [{ name: NAME, description: DESCRIPTION, input_schema: SCHEMA }];
    const { content } = await messagesOf(url, retries).create({ ...body(ASKS_WEATHER), tools });
    const call = content.find(({ type }) => type === 'tool_use');
    return called(call.name, call.input);
  },
});
