/** The official OpenAI SDK, unmodified but for its base URL, streams through an issued URL. */
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import OpenAI from 'openai';

const issuer = process.env.ISSUER_URL ?? 'http://127.0.0.1:8787';
const apiKeyFile = new URL('../../.presign/api-key', import.meta.url);
const apiKey = process.env.PRESIGN_API_KEY ?? readFileSync(apiKeyFile, 'utf8').trim();

const issued = await fetch(`${issuer}/v1/presign`, {
  method: 'POST',
  headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
  body: JSON.stringify({ provider: 'sandbox', path: '/v1/chat/completions', client_api_key: 'sk-sandbox' }),
});
assert.equal(issued.status, 200, await issued.clone().text());
const { url } = (await issued.json()) as { url: string };

// The SDK adds the rest of the path itself. It wants a key; the gateway puts the real one in its place.
const client = new OpenAI({ baseURL: url.replace('/chat/completions', ''), apiKey: 'unused' });
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
