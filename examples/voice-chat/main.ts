/** A web app whose page has a conversation by voice: its backend issues the URL and is not in between. */
import { strict as assert } from 'node:assert';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { serve } from '@hono/node-server';
import { WebSocket } from 'ws';
import { reasonIn } from '../presign.ts';
import { app } from './app.ts';
import { Conversation } from './conversation.js';

const server = serve({
  fetch: app.fetch,
  hostname: '127.0.0.1',
  port: Number(process.env.WEB_APP_PORT ?? 3000),
});
if (!server.listening) await new Promise((resolve) => server.once('listening', resolve));
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

/** Sound of a second, and silence: the sandbox hears that someone has spoken. */
const SPEECH = Int16Array.from({ length: 24_000 }, (_, at) => 8_000 * Math.sin(at / 20));
const SILENCE = new Int16Array(16_800);

/** As a browser has it: it says which page asks. */
class PageSocket extends WebSocket {
  constructor(url: string) {
    super(url, { origin: address });
  }
}
globalThis.WebSocket = PageSocket as never;

// The steps of the page, with the page's own code.
const issued = await fetch(`${address}/voice-url`, { method: 'POST' });
assert.equal(issued.status, 200, await reasonIn(issued));
const answer = { words: '', samples: 0, over: () => {}, refusal: undefined as string | undefined };
const conversation = new Conversation(((await issued.json()) as { url: string }).url, {
  heardSpeech: () => {},
  words(words) {
    answer.words += words;
  },
  sound({ length }) {
    answer.samples += length;
  },
  answered: () => answer.over(),
  refused(why) {
    answer.refusal ??= why;
    answer.over();
  },
});
await conversation.opened;

/** Speaks in pieces of 20 ms, as a microphone does. Resolves with the answer. */
async function ask(): Promise<string> {
  Object.assign(answer, { words: '', samples: 0 });
  const over = new Promise<void>((resolve) => {
    answer.over = resolve;
  });
  for (const sound of [SPEECH, SILENCE])
    for (let at = 0; at < sound.length && answer.refusal === undefined; at += 480) {
      conversation.speak(sound.slice(at, at + 480));
      // Reads what the gateway has sent meanwhile.
      await setImmediate();
    }
  if (answer.refusal === undefined) await over;
  if (answer.refusal !== undefined) throw new Error(answer.refusal);
  return `${answer.words} (${(answer.samples / 24_000).toFixed(1)} s of sound)`;
}

for (let i = 0; i < 3; i++) process.stdout.write(`The model said: ${await ask()}\n`);
await assert.rejects(ask(), /uses_exhausted: This URL has no uses left \(max_uses 3\)\./);
const { used, spent } = await conversation.left();
process.stdout.write(`Used ${used} turns, spent ${spent} microdollars.\n`);
conversation.close();

process.stdout.write(`Try it at ${address}/ until you press Ctrl-C.\n`);
