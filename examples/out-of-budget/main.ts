/** When a URL's uses are spent, the holder gets an error that says so, and nothing reaches the provider. */
import { strict as assert } from 'node:assert';
import { presign } from '../presign.ts';

const { url } = await presign.presign({
  provider: 'sandbox',
  path: '/v1/chat/completions',
  client_api_key: 'sk-sandbox',
  max_uses: 2,
});

const call = () =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox-1', messages: [{ role: 'user', content: 'Hello' }] }),
  });

// Ten at once: the limit is exact, however the calls race.
const answers = await Promise.all(Array.from({ length: 10 }, call));
const statuses = answers.map((answer) => answer.status);
process.stdout.write(`Ten calls at once on a URL for two: ${statuses.join(' ')}\n`);
assert.equal(statuses.filter((status) => status === 200).length, 2);
assert.equal(statuses.filter((status) => status === 403).length, 8);

const { error } = (await (await call()).json()) as { error: { code: string; message: string } };
process.stdout.write(`And from then on: ${error.code}: ${error.message}\n`);
assert.equal(error.code, 'uses_exhausted');
