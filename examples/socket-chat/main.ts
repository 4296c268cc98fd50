/** A web app whose page chats over a socket of its own: its backend issues the URL and is not in between. */
import { strict as assert } from 'node:assert';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { WebSocket } from 'ws';
import { reasonIn } from '../presign.ts';
import { app } from './app.ts';
import { Chat } from './chat.js';

const server = serve({
  fetch: app.fetch,
  hostname: '127.0.0.1',
  port: Number(process.env.WEB_APP_PORT ?? 3000),
});
if (!server.listening) await new Promise((resolve) => server.once('listening', resolve));
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

/** As a browser has it: it says which page asks. */
class PageSocket extends WebSocket {
  constructor(url: string) {
    super(url, { origin: address });
  }
}
globalThis.WebSocket = PageSocket as never;

// The steps of the page, with the page's own code.
const issued = await fetch(`${address}/chat-url`, { method: 'POST' });
assert.equal(issued.status, 200, await reasonIn(issued));
const chat = new Chat(((await issued.json()) as { url: string }).url);
for (const question of ['Hello', 'Do you remember?', 'The third turn']) {
  const pieces: string[] = [];
  await chat.ask(question, (piece) => pieces.push(piece));
  assert.ok(pieces.length > 2);
  process.stdout.write(`The model said, in ${pieces.length} pieces: ${pieces.join('')}\n`);
}
// On the open socket the event says why; a socket that is opened now is refused, too.
await assert.rejects(
  chat.ask('The fourth', () => {}),
  /uses_exhausted: This URL has no uses left \(max_uses 3\)\./,
);
const { used, spent } = await chat.left();
process.stdout.write(`Used ${used} turns, spent ${spent} microdollars.\n`);
chat.close();

process.stdout.write(`Try it at ${address}/ until you press Ctrl-C.\n`);
