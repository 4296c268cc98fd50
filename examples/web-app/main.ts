/** A web app whose page streams from the model by itself: its backend issues URLs and is not in between. */
import { strict as assert } from 'node:assert';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { reasonIn } from '../presign.ts';
import { app } from './app.ts';
import { chat } from './chat.js';

const server = serve({
  fetch: app.fetch,
  hostname: '127.0.0.1',
  port: Number(process.env.WEB_APP_PORT ?? 3000),
});
if (!server.listening) await new Promise((resolve) => server.once('listening', resolve));
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

// The steps of the page, with the page's own code.
const answer = await fetch(`${address}/chat-url`, { method: 'POST' });
assert.equal(answer.status, 200, await reasonIn(answer));
const { url } = (await answer.json()) as { url: string };
const pieces: string[] = [];
for await (const piece of chat(url, 'Is anybody there?')) pieces.push(piece);
assert.ok(pieces.length > 2);
assert.match(pieces.join(''), /You said: Is anybody there\?/);
process.stdout.write(`The model said, in ${pieces.length} pieces: ${pieces.join('')}\n`);

process.stdout.write(`Try it at ${address}/ until you press Ctrl-C.\n`);
