import { readFileSync } from 'node:fs';
import { Hono } from 'hono';
import { presign, reasonFor } from '../presign.ts';

const fileOf = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');
const SCRIPTS = ['conversation.js', 'recorder.js', 'sound.js'];

/** The backend: a page, and a URL for whoever is signed in. It never hears the conversation, and the page never sees a key. */
export const app = new Hono()
  .get('/', (c) => c.html(fileOf('page.html')))
  // Your own session says who asks; POST, so that no cache keeps what is a permission.
  .post('/voice-url', async (c) => c.json(await voiceUrlOf('user-42')))
  .onError((error, c) => c.json({ error: { message: reasonFor(error) } }, 502));

for (const name of SCRIPTS)
  app.get(`/${name}`, (c) => c.body(fileOf(name), 200, { 'content-type': 'text/javascript' }));

/**
 * One conversation: ten minutes, three answers, two dollars, and a session that the page cannot change. Each answer holds the price of the
 * model's whole context window until it ends, here about a dollar, and costs what it used, here less than a cent.
 */
async function voiceUrlOf(user: string): Promise<{ url: string }> {
  const { url } = await presign.presign({
    provider: 'sandbox',
    path: '/v1/realtime',
    sockets: true,
    client_api_key: 'sk-sandbox',
    external_user: user,
    expires_in: 600,
    max_uses: 3,
    cost_limit: 2_000_000,
    models: ['gpt-realtime'],
    config: {
      instructions: 'Answer in one sentence.',
      tools: [],
      max_output_tokens: 1_000,
      audio: { output: { voice: 'marin' } },
    },
  });
  return { url };
}
