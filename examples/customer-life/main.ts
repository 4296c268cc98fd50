/** A customer's life: a key for the backend, a budget, a URL, calls, events, the bill, and the end of it all. */
import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import OpenAI, { APIError } from 'openai';
import { adminKey, ask, tell, until } from './ask.ts';
import { listen } from './events.ts';

type Figures = { used: number; spent: number };
type Sums = {
  external_user: string;
  calls: number;
  uses: number;
  cost: number;
  calls_of_unknown_cost: number;
};

const customer = `customer-${randomUUID()}`;
const aMinuteAgo = Math.floor(Date.now() / 1000) - 60;

// The operator gives the customer's backend a key that can issue, read and revoke, and no more.
const made = await ask(adminKey, 201, 'POST /v1/api-keys', { name: customer, scopes: ['presign', 'read'] });
const { id: keyId, key } = JSON.parse(made) as { id: string; key: string };
const provider = {
  provider: 'sandbox',
  name: customer,
  key: 'sk-sandbox-customer',
  budget: { max_uses: 100, cost_limit: 100_000 },
};
const forbidden = JSON.parse(await ask(key, 403, 'POST /v1/virtual-keys', provider));
assert.equal(forbidden.error.code, 'forbidden');

// The provider's key stays at the issuer, with a budget over all URLs that are issued with it.
const kept = await ask(adminKey, 201, 'POST /v1/virtual-keys', provider);
assert.ok(!kept.includes(provider.key));
const { id: virtualKey } = JSON.parse(kept) as { id: string };
const webhook = await listen();
tell(`An API key, and the virtual key ${virtualKey} with a budget.`);

// The backend issues a URL for its user.
const asked = {
  provider: 'sandbox',
  path: '/v1/chat/completions',
  virtual_key: virtualKey,
  external_user: customer,
  max_uses: 10,
  cost_limit: 50_000,
};
const issued = await ask(key, 200, 'POST /v1/presign', asked);
const { url, session_id } = JSON.parse(issued) as { url: string; session_id: string };

// The user calls the model three times. Each answer tells its cost in microdollars.
const openai = new OpenAI({ baseURL: url.replace('/chat/completions', ''), apiKey: 'unused', maxRetries: 0 });
const call = (content: string) =>
  openai.chat.completions
    .create({ model: 'sandbox-1', messages: [{ role: 'user', content }] })
    .withResponse();
const costs: number[] = [];
for (const said of ['Hello', 'A somewhat longer question', 'Goodbye']) {
  const { data, response } = await call(said);
  assert.ok(data.choices[0]?.message.content?.includes(said));
  const cost = response.headers.get('x-presign-cost');
  assert.match(cost ?? '', /^[1-9]\d*$/);
  costs.push(Number(cost));
}
const spent = costs.reduce((sum, cost) => sum + cost);
tell(`Three calls cost ${costs.join(' + ')} = ${spent} microdollars.`);

// The session says the same: at once what is live, a second later the ledger. So does the budget.
const settled = { used: 3, spent };
const session = await until('the ledger', async () => {
  const { grants } = JSON.parse(await ask(key, 200, `GET /v1/sessions/${session_id}`));
  const [grant] = grants as { status: string; settled: Figures; live: Figures & { held: number } }[];
  return grant?.settled.used === 3 ? grant : undefined;
});
assert.deepEqual(session.settled, settled);
assert.deepEqual(session.live, { ...settled, held: 0 });
const { budget } = JSON.parse(await ask(key, 200, `GET /v1/virtual-keys/${virtualKey}`));
assert.deepEqual(budget.settled, settled);
tell(`The session and the budget: ${session.settled.used} used, ${session.settled.spent} spent.`);

// The bill: each call once, at the cost that its answer told.
const range = `from=${aMinuteAgo}&group_by=external_user&virtual_key=${virtualKey}`;
const usage = JSON.parse(await ask(key, 200, `GET /v1/usage?${range}`)) as { data: Sums[]; total: object };
const [row] = usage.data;
assert.ok(row && usage.data.length === 1);
const { external_user, ...sums } = row;
assert.equal(external_user, customer);
assert.deepEqual([sums.calls, sums.uses, sums.cost, sums.calls_of_unknown_cost], [3, 3, spent, 0]);
assert.deepEqual(usage.total, sums);
tell(`Usage: ${sums.calls} calls, ${sums.cost} microdollars.`);

// The same was told to the customer's backend, call by call, in as many events as the ledger had batches.
const told = await webhook.heard('usage.settled', (events) => {
  const calls = events.flatMap((event) => (event.type === 'usage.settled' ? event.data.calls : []));
  const ours = calls.filter((one) => one.session_id === session_id);
  return ours.length >= 3 ? ours.map(({ cost }) => cost) : undefined;
});
if (told) assert.deepEqual(told.toSorted(), costs.toSorted());
tell(told ? 'Events, signed and verified, told the same costs.' : 'The log of deliveries has usage.settled.');

// The user is gone. 204 means that no gateway serves the URL any more.
await ask(key, 204, `DELETE /v1/sessions/${session_id}`);
const refusal = await call('Still there?').then(
  () => assert.fail('a revoked URL was served'),
  (error: unknown) => error,
);
assert.ok(refusal instanceof APIError, String(refusal));
assert.equal(refusal.status, 403);
assert.equal(refusal.code, 'grant_revoked');
tell(`A call after the session was revoked: ${refusal.status} ${refusal.code}.`);
const revoked = await webhook.heard('grant.revoked', (events) =>
  events
    .flatMap((event) => (event.type === 'grant.revoked' ? event.data : []))
    .find((data) => data.session_id === session_id),
);
if (revoked) assert.deepEqual([revoked.reason, revoked.settled], ['revoked', settled]);
tell(revoked ? 'An event told of it.' : 'The log of deliveries has grant.revoked.');

// The bill as a spreadsheet reads it: the same row, and nothing for the call that was refused.
const csv = await ask(key, 200, `GET /v1/usage?${range}&format=csv`);
const [header, cells, ...rest] = csv.split('\r\n').map((line) => line.split(','));
assert.deepEqual(header, Object.keys(row));
assert.deepEqual(cells, Object.values(row).map(String));
assert.deepEqual(rest, [['']]);
tell('The same as CSV.');

// The customer leaves: the provider's key is erased, and the backend's key is refused from its next request on.
await ask(adminKey, 204, `DELETE /v1/virtual-keys/${virtualKey}`);
const erased = JSON.parse(await ask(key, 400, 'POST /v1/presign', asked));
assert.equal(erased.error.param, 'virtual_key');
await ask(adminKey, 204, `DELETE /v1/api-keys/${keyId}`);
const after = JSON.parse(await ask(key, 401, `GET /v1/sessions/${session_id}`));
assert.equal(after.error.code, 'unauthenticated');
await webhook.close();
tell(`The API key after it was revoked: 401 ${after.error.code}.`);
