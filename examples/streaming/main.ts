/** The official OpenAI SDK streams through an issued URL. Only its options differ. */
import { strict as assert } from 'node:assert';
import { openaiOptions } from '@presign/client';
import OpenAI from 'openai';
import { presign } from '../presign.ts';

const issued = await presign.presign({
  provider: 'sandbox',
  path: '/v1/chat/completions',
  client_api_key: 'sk-sandbox',
});

// The base URL is cut where the SDK adds the rest. It wants a key; the gateway puts the real one in its place.
const client = new OpenAI(openaiOptions(issued));
const stream = await client.chat.completions.create({
  model: 'sandbox-1',
  messages: [{ role: 'user', content: 'Tell me a story' }],
  stream: true,
});

const pieces: string[] = [];
for await (const chunk of stream) {
  const piece = chunk.choices[0]?.delta.content ?? '';
  process.stdout.write(piece);
  if (piece !== '') pieces.push(piece);
}
process.stdout.write(`\n\nThat came in ${pieces.length} pieces.\n`);
assert.ok(pieces.length > 1);
assert.match(pieces.join(''), /Tell me a story/);
