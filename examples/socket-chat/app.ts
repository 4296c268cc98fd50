import { readFileSync } from 'node:fs';
import { Hono } from 'hono';
import { presign, reasonFor } from '../presign.ts';

const fileOf = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');

/** The backend: a page, and a URL for whoever is signed in. It never sees the chat, and the page never sees a key. */
export const app = new Hono()
  .get('/', (c) => c.html(fileOf('page.html')))
  .get('/chat.js', (c) => c.body(fileOf('chat.js'), 200, { 'content-type': 'text/javascript' }))
  // Your own session says who asks; POST, so that no cache keeps what is a permission.
  .post('/chat-url', async (c) => c.json(await chatUrlOf('user-42')))
  .onError((error, c) => c.json({ error: { message: reasonFor(error) } }, 502));

/**
 * One conversation: ten minutes, three turns, three cents, and a model that the page cannot change. A turn that continues a response holds
 * the price of the model's whole context window until it ends, here about two cents, and costs what it used.
 */
async function chatUrlOf(user: string): Promise<{ url: string }> {
  const { url } = await presign.presign({
    provider: 'sandbox',
    path: '/v1/responses',
    sockets: true,
    client_api_key: 'sk-sandbox',
    external_user: user,
    expires_in: 600,
    max_uses: 3,
    cost_limit: 30_000,
    config: { model: 'sandbox-1', max_output_tokens: 200 },
  });
  return { url };
}
