import type { ServerResponse } from 'node:http';
import { ledger } from '@presign/schema/ledger-tables';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
let url: string;
/** Answers under way. */
let open: ServerResponse[] = [];

beforeAll(async () => {
  providers = await startProviders();
  providers.answer = (_seen, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 0\n\n');
    open.push(response);
  };
});
afterAll(() => providers.close());
beforeEach(async () => {
  open = [];
  stack = await startStack({ providers: providers.file });
  url = (await stack.issue({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-real' })).url;
  return () => stack.close();
});

const begin = () => request(url, { method: 'POST', body: '{}', dispatcher: new Agent() });
async function ledgerRows(count: number) {
  return eventually(async () => {
    await stack.issuer.ledger.drainAll();
    const rows = await stack.db.select().from(ledger);
    return rows.length >= count ? rows : undefined;
  });
}
const refusesConnections = () =>
  eventually(async () =>
    openSocket(new URL(url).origin).then(
      (socket) => void socket.destroy(),
      () => true,
    ),
  );

test('a closing gateway refuses new connections, lets streams end, and settles them', async () => {
  const answers = await Promise.all([begin(), begin(), begin()]);
  let closed = false;
  const closing = stack.gateways[0]?.close().then(() => {
    closed = true;
  });
  await refusesConnections();
  expect(closed).toBe(false);
  for (const response of open) response.end('data: [DONE]\n\n');
  for (const answer of answers) expect(await answer.body.text()).toBe('data: 0\n\ndata: [DONE]\n\n');
  await closing;
  expect((await ledgerRows(3)).map((row) => [row.status, row.uses])).toEqual(
    Array.from({ length: 3 }, () => [200, 1]),
  );
});

test('a closing gateway keeps reading for holders who have left, and settles with the usage it read', async () => {
  const answer = await begin();
  answer.body.destroy();
  answer.body.on('error', () => {});
  const closing = stack.gateways[0]?.close();
  await refusesConnections();
  open[0]?.end('data: [DONE]\n\n');
  await closing;
  expect(await ledgerRows(1)).toMatchObject([{ status: 200, uses: 1 }]);
});

test('streams that exceed the grace period are cut and still settled', async () => {
  const answer = await begin();
  const broken = expect(answer.body.text()).rejects.toThrow();
  await stack.gateways[0]?.close({ graceMs: 200 });
  await broken;
  expect(await ledgerRows(1)).toMatchObject([{ status: 200, uses: 1, outcome: 'settled' }]);
});

test('closing twice equals closing once', async () => {
  const answer = await begin();
  const [gateway] = stack.gateways;
  const closings = [gateway?.close(), gateway?.close()];
  await refusesConnections();
  open[0]?.end('data: [DONE]\n\n');
  expect(await answer.body.text()).toBe('data: 0\n\ndata: [DONE]\n\n');
  expect(await Promise.all(closings)).toEqual([undefined, undefined]);
  expect(await gateway?.close()).toBeUndefined();
  expect((await ledgerRows(1)).map((row) => [row.status, row.uses])).toEqual([[200, 1]]);
  // From level 50 (pino): errors.
  expect(stack.logs.filter((line) => (JSON.parse(line) as { level: number }).level >= 50)).toEqual([]);
});
