/** When a URL's uses or its money are spent, the holder gets an error that says so, and nothing reaches the provider. */
import { strict as assert } from 'node:assert';
import { presign, reasonIn } from '../presign.ts';

const sandbox = { provider: 'sandbox', path: '/v1/chat/completions', client_api_key: 'sk-sandbox' };
type Refusal = { error: { code: string; message: string; limit?: number; remaining?: number } };

const call = (url: string) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'sandbox-1',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hello' }],
    }),
  });

// Ten at once: the limit is exact, however the calls race.
const two = await presign.presign({ ...sandbox, max_uses: 2 });
const answers = await Promise.all(Array.from({ length: 10 }, () => call(two.url)));
const statuses = answers.map((answer) => answer.status);
process.stdout.write(`Ten calls at once on a URL for two: ${statuses.join(' ')}\n`);
const refused = answers.find((answer) => !answer.ok) ?? Response.error();
assert.equal(statuses.filter((status) => status === 200).length, 2, await reasonIn(refused));
assert.equal(statuses.filter((status) => status === 403).length, 8);

const { error } = (await (await call(two.url)).json()) as Refusal;
process.stdout.write(`And from then on: ${error.message}\n`);
assert.equal(error.code, 'uses_exhausted');

// 150 microdollars are 0.015 cents. Calls pass for as long as what is left covers the most that one can cost.
const budget = 150;
const cheap = await presign.presign({ ...sandbox, cost_limit: budget });
const costs: number[] = [];
let last = await call(cheap.url);
for (; last.status === 200 && costs.length < budget; last = await call(cheap.url)) {
  await last.arrayBuffer();
  costs.push(Number(last.headers.get('x-presign-cost')));
}
const spent = costs.reduce((sum, cost) => sum + cost, 0);
process.stdout.write(`On a URL for ${budget} microdollars: ${costs.join(' + ')} = ${spent}\n`);
assert.equal(last.status, 402, await reasonIn(last));
assert.ok(costs.length > 0 && spent > 0 && spent <= budget);

const refusal = ((await last.json()) as Refusal).error;
process.stdout.write(`And then: ${refusal.message}\n`);
assert.match(refusal.code, /^cost_limit_(too_low|reached)$/);
assert.deepEqual([refusal.limit, refusal.remaining], [budget, budget - spent]);
