/** A backend issues a URL; whoever holds it calls the model without any key. */
import { strict as assert } from 'node:assert';
import { presign, reasonIn } from '../presign.ts';

// The backend alone has the API key and the provider's key. It says what may be called, how often, until when.
const { url, expires_at } = await presign.presign({
  provider: 'sandbox',
  path: '/v1/chat/completions',
  client_api_key: 'sk-sandbox',
  max_uses: 3,
  expires_in: 600,
  external_user: 'user-42',
});
process.stdout.write(`Issued until ${new Date(expires_at * 1000).toISOString()}:\n${url}\n\n`);

// The holder, a browser for one, has the URL and nothing else.
const answer = await fetch(url, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'sandbox-1', messages: [{ role: 'user', content: 'Hello' }] }),
});
assert.equal(answer.status, 200, await reasonIn(answer));
const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
const said = choices[0]?.message.content ?? '';
assert.match(said, /Hello/);
const usesLeft = answer.headers.get('x-presign-uses-remaining');
assert.equal(usesLeft, '2');
process.stdout.write(`The model said: ${said}\nUses left: ${usesLeft}\n`);

// The URL does not reach other paths.
const elsewhere = await fetch(url.replace('/v1/chat/completions', '/v1/embeddings'), { method: 'POST' });
assert.equal(elsewhere.status, 403);
const refusal = (await elsewhere.json()) as { error: { code: string; message: string } };
assert.equal(refusal.error.code, 'path_not_allowed');
process.stdout.write(`Another path: ${refusal.error.message}\n`);
