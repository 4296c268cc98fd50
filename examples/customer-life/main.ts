/** A customer's life: a key for the backend, a budget, a URL, calls, events, the bill, and the end of it all. */
import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { createPresign, openaiOptions } from '@presign/client';
import OpenAI, { APIError } from 'openai';
import { issuerUrl, presign as operator } from '../presign.ts';
import { listen } from './events.ts';
import { refusalOf, tell, until } from './tell.ts';

const customer = `customer-${randomUUID()}`;
const aMinuteAgo = Math.floor(Date.now() / 1000) - 60;

// The operator gives the customer's backend a key that can issue, read and revoke, and no more.
const { id: keyId, key } = await operator.createApiKey({ name: customer, scopes: ['presign', 'read'] });
const backend = createPresign({ url: issuerUrl, apiKey: key });
const provider = {
  provider: 'sandbox',
  name: customer,
  key: 'sk-sandbox-customer',
  budget: { max_uses: 100, cost_limit: 100_000 },
};
assert.equal((await refusalOf(backend.createVirtualKey(provider))).code, 'forbidden');

// The provider's key stays at the issuer, with a budget over all URLs that are issued with it.
const kept = await operator.createVirtualKey(provider);
assert.ok(!JSON.stringify(kept).includes(provider.key));
const virtualKey = kept.id;
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
const issued = await backend.presign(asked);
const { session_id } = issued;

// The user calls the model three times. Each answer tells its cost in microdollars.
const openai = new OpenAI({ ...openaiOptions(issued), maxRetries: 0 });
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
  const [grant] = (await backend.getSession({ id: session_id })).grants;
  return grant?.settled.used === 3 ? grant : undefined;
});
assert.deepEqual(session.settled, settled);
assert.deepEqual(session.live, { ...settled, held: 0 });
const { budget } = await backend.getVirtualKey({ id: virtualKey });
assert.deepEqual(budget?.settled, settled);
tell(`The session and the budget: ${session.settled.used} used, ${session.settled.spent} spent.`);

// The bill: each call once, at the cost that its answer stated.
const range = { from: aMinuteAgo, group_by: ['external_user'], virtual_key: virtualKey } as const;
const usage = await backend.getUsage(range);
const [row] = usage.data;
assert.ok(row && usage.data.length === 1);
const { external_user, ...sums } = row;
assert.equal(external_user, customer);
assert.deepEqual([sums.calls, sums.uses, sums.cost, sums.calls_of_unknown_cost], [3, 3, spent, 0]);
assert.deepEqual(usage.total, sums);
tell(`Usage: ${sums.calls} calls, ${sums.cost} microdollars.`);

// Each call can be found, with what it cost.
const { data: calls } = await backend.listCalls({ session_id });
assert.deepEqual(calls.map(({ cost }) => cost).toSorted(), costs.toSorted());
const disputed = calls[0]?.request_id;
assert.ok(disputed);
assert.deepEqual((await backend.getCall({ request_id: disputed })).cost, calls[0]?.cost);
tell(`Calls: ${calls.map(({ cost, hold }) => `${cost} of ${hold} held`).join(', ')}.`);

// The customer's backend receives the same costs, call by call, in one event for each batch of the ledger.
const announced = await webhook.heard('usage.settled', (events) => {
  const calls = events.flatMap((event) => (event.type === 'usage.settled' ? event.data.calls : []));
  const ours = calls.filter((one) => one.session_id === session_id);
  return ours.length >= 3 ? ours.map(({ cost }) => cost) : undefined;
});
if (announced) assert.deepEqual(announced.toSorted(), costs.toSorted());
tell(
  announced
    ? 'Events, signed and verified, have the same costs.'
    : 'The log of deliveries has usage.settled.',
);

// The user is gone. 204 means that no gateway serves the URL any more.
await backend.revokeSession({ id: session_id });
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
tell(revoked ? 'An event announced it.' : 'The log of deliveries has grant.revoked.');

// The bill as a spreadsheet reads it: the same row, and nothing for the call that was refused.
const csv = await backend.getUsage({ ...range, format: 'csv' });
const [header, cells, ...rest] = csv.split('\r\n').map((line) => line.split(','));
assert.deepEqual(header, Object.keys(row));
assert.deepEqual(cells, Object.values(row).map(String));
assert.deepEqual(rest, [['']]);
tell('The same as CSV.');

// The customer leaves: the provider's key is erased, and the backend's key is refused from its next request on.
await operator.deleteVirtualKey({ id: virtualKey });
assert.equal((await refusalOf(backend.presign(asked))).param, 'virtual_key');
await operator.revokeApiKey({ id: keyId });
const after = await refusalOf(backend.getSession({ id: session_id }));
assert.deepEqual([after.status, after.code], [401, 'unauthenticated']);
await webhook.close();
tell(`The API key after it was revoked: 401 ${after.code}.`);
