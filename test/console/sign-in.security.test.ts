import { audit } from '@presign/schema/tables';
import { desc, eq } from 'drizzle-orm';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount } from '../issuer/accounts.ts';
import { type OwnIssuer, startOwnIssuer } from '../issuer/own-issuer.ts';
import { FROM_CONSOLE, signInWith } from './console-stack.ts';

let stack: Stack;
let issuer: OwnIssuer;
let now = Date.now();

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
beforeEach(async () => {
  issuer = await startOwnIssuer(stack, { now: () => now });
  return () => issuer.close();
});
afterAll(() => stack.close());

/** Signs in from one of this machine's own addresses. Returns the status, and the seconds to wait. */
async function signIn(apiKey: string, from = '127.0.0.1') {
  const dispatcher = new Agent({ localAddress: from });
  const { statusCode, headers, body } = await request(`${issuer.issuerUrl}/console/session`, {
    ...{ dispatcher, method: 'POST', body: JSON.stringify({ api_key: apiKey }) },
    headers: { 'content-type': 'application/json', ...FROM_CONSOLE },
  });
  await body.dump();
  await dispatcher.close();
  return [statusCode, headers['retry-after']];
}

const MOST = 20;
const failAll = () => Promise.all(Array.from({ length: MOST + 5 }, () => signIn('presign_sk_wrong')));

describe('sign-ins from an address', () => {
  test(`wait after ${MOST} failures in a minute, even in parallel, and those from other addresses do not`, async () => {
    const statuses = (await failAll()).map(([status]) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(MOST);
    expect(statuses.filter((status) => status === 429)).toHaveLength(5);
    expect(await signIn(stack.apiKey)).toEqual([429, '3']);
    expect(await signIn(stack.apiKey, '127.0.0.2')).toEqual([204, undefined]);
    now += 3_000;
    expect(await signIn('presign_sk_wrong')).toEqual([401, undefined]);
    expect(await signIn('presign_sk_wrong')).toEqual([429, '3']);
    now += 60_000;
    expect((await failAll()).filter(([status]) => status === 401)).toHaveLength(MOST);
  });

  test('are not counted if they succeed, or fail before the key is judged', async () => {
    for (let i = 0; i < MOST + 5; i++) expect((await signIn(stack.apiKey))[0]).toBe(204);
    for (let i = 0; i < MOST + 5; i++) expect((await signIn(''))[0]).toBe(400);
    expect((await failAll()).filter(([status]) => status === 401)).toHaveLength(MOST);
  });

  test('do not wait longer if a clock is set back', async () => {
    await failAll();
    now -= 3_600_000;
    expect((await signIn(stack.apiKey))[0]).toBe(429);
    now += 60_000;
    expect((await signIn(stack.apiKey))[0]).toBe(204);
  });
});

test('a sign-in is in the audit log of its account, with its key and address, and a failed sign-in is not', async () => {
  const { id: account, apiKey } = await addAccount(stack);
  const answer = await signInWith(issuer, apiKey);
  expect(answer.status).toBe(204);
  await signInWith(issuer, `${apiKey}x`);
  const rows = await stack.db
    .select()
    .from(audit)
    .where(eq(audit.accountId, account))
    .orderBy(desc(audit.at));
  expect(rows).toHaveLength(1);
  const [row] = rows;
  expect(row).toMatchObject({
    ...{ action: 'console.signed_in', targetKind: 'api_key', before: null, after: null },
    ...{ remoteAddress: '127.0.0.1', requestId: answer.headers.get('x-request-id') },
  });
  expect(row?.actor).toBe(row?.targetId);
  const cookie = answer.headers.get('set-cookie')?.split(';')[0]?.split('=')[1] ?? '';
  for (const secret of [apiKey, cookie]) expect(JSON.stringify(rows)).not.toContain(secret);
});
