import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPresign, each, type Presign, type PresignOptions } from '@presign/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

type Issue = (presign: Presign, external_user: string) => Promise<{ session_id: string }>;

const ISSUES: [string, Issue][] = [
  ['presign', (presign, external_user) => presign.presign({ ...CHAT, external_user })],
  ['mcpPresign', (presign, external_user) => presign.mcpPresign({ servers: [SERVER], external_user })],
];
const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const SERVER = { name: 'docs', url: 'https://mcp.example.com/mcp' };

/** The issuer does what it is asked; the first answers never come. */
function losing(answers: number): PresignOptions['fetch'] {
  let calls = 0;
  return async (url, init) => {
    const answer = await fetch(url, init);
    if (calls++ >= answers) return answer;
    await answer.text();
    throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } });
  };
}

const clientOf = (options: Partial<PresignOptions>) =>
  createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey, ...options });

async function sessionsOf(external_user: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of each(clientOf({}).listSessions, { external_user })) ids.push(id);
  return ids;
}

test.each(ISSUES)(
  '%s whose answer is lost twice issues once, and returns the issued session',
  async (_id, issue) => {
    const user = randomUUID();
    const { session_id } = await issue(clientOf({ fetch: losing(2) }), user);
    expect(await sessionsOf(user)).toEqual([session_id]);
  },
);

test.each(ISSUES)('%s requested twice at once by one key issues once', async (_id, issue) => {
  const user = randomUUID();
  const idempotencyKey = randomUUID();
  const keyed = (presign: Presign): Presign => ({
    ...presign,
    presign: (fields) => presign.presign(fields, { idempotencyKey }),
    mcpPresign: (fields) => presign.mcpPresign(fields, { idempotencyKey }),
  });
  const both = await Promise.all([0, 1].map(() => issue(keyed(clientOf({})), user)));
  expect(both[0]).toEqual(both[1]);
  expect(await sessionsOf(user)).toHaveLength(1);
});

test('an API key whose answer is lost twice is created once, and returned', async () => {
  const name = randomUUID();
  const made = await clientOf({ fetch: losing(2) }).createApiKey({ name, scopes: ['read'] });
  const { data } = await clientOf({}).listApiKeys({ limit: 100 });
  expect(data.filter((key) => key.name === name)).toMatchObject([{ id: made.id }]);
  expect(Array.isArray((await clientOf({ apiKey: made.key }).listSessions()).data)).toBe(true);
});

test('a request that is aborted while it waits for its retry ends at once', async () => {
  const giving = new AbortController();
  const presign = createPresign({
    url: stack.issuerUrl,
    apiKey: stack.apiKey,
    fetch: async () => {
      const answer = new Response('{}', { status: 503, headers: { 'retry-after': '20' } });
      const text = async () => {
        giving.abort(new Error('given up'));
        return '{}';
      };
      return Object.defineProperty(answer, 'text', { value: text });
    },
  });
  const asked = presign.listSessions({}, { signal: giving.signal });
  // Sooner than the 20 s after which it would be sent again.
  const late = sleep(15_000, 'waits', { ref: false });
  await expect(Promise.race([asked, late])).rejects.toThrow('given up');
});
