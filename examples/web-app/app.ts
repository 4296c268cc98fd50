import { readFileSync } from 'node:fs';
import { Hono } from 'hono';
import { presign, reasonFor } from '../presign.ts';

const fileOf = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');

/**
 * The backend: a page, and a URL for whoever is signed in. It never sees the chat, and the page never sees a key.
 * In Express the route is `app.post('/chat-url', async (req, res) => res.json(await chatUrlOf(req.user.id)))`.
 */
export const app = new Hono()
  .get('/', (c) => c.html(fileOf('page.html')))
  .get('/chat.js', (c) => c.body(fileOf('chat.js'), 200, { 'content-type': 'text/javascript' }))
  // Your own session says who asks; POST, so that no cache keeps what is a permission.
  .post('/chat-url', async (c) => c.json(await chatUrlOf('user-42')))
  .onError((error, c) => c.json({ error: { message: reasonFor(error) } }, 502));

/** One conversation: ten minutes, five messages, a cent, and a model that the page cannot change. */
async function chatUrlOf(user: string): Promise<{ url: string }> {
  const { url } = await presign.presign({
    provider: 'sandbox',
    path: '/v1/chat/completions',
    client_api_key: 'sk-sandbox',
    external_user: user,
    expires_in: 600,
    max_uses: 5,
    cost_limit: 10_000,
    config: { model: 'sandbox-1', max_tokens: 200 },
  });
  return { url };
}
