import { generateKeyPairSync } from 'node:crypto';
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk';
import { GoogleGenAI } from '@google/genai';
import { OAuth2Client } from 'google-auth-library';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { PLACEHOLDER_KEY } from './keys.ts';
import { type Google, SERVICE_ACCOUNT, startGoogle } from './upstreams/vertex.ts';

let google: Google;
let stack: Stack;

beforeAll(async () => {
  google = await startGoogle();
  const price = { input: 1_000_000, output: 5_000_000 };
  const pricing = { 'gemini-2.5-flash': price, 'claude-haiku-4-5@20251001': price };
  stack = await startStack({
    providers: { vertex: { base_url: google.url, token_url: `${google.url}/token`, pricing } },
  });
});
afterAll(async () => {
  await stack.close();
  await google.close();
});
beforeEach(() => {
  google.tokens.are = 'given';
  google.tokens.seconds = 3_600;
  google.revoked.clear();
  google.assertions.length = 0;
  google.seen.length = 0;
});

const PLACE = 'projects/my-project/locations/europe-west1/publishers';
const GEMINI = `/v1beta1/${PLACE}/google/models/gemini-2.5-flash`;
const CLAUDE = `/v1/${PLACE}/anthropic/models/claude-haiku-4-5@20251001`;
const PATH = `${GEMINI}:generateContent`;
const paths = [PATH, `${GEMINI}:streamGenerateContent`, `${CLAUDE}:rawPredict`, `${CLAUDE}:streamRawPredict`];

const issue = (limits: object = {}, key: object = SERVICE_ACCOUNT) =>
  stack.issue({
    provider: 'vertex',
    path: paths,
    client_api_key: JSON.stringify(key, undefined, 2),
    ...limits,
  });
const baseOf = (url: string) => url.replace(PATH, '');

/** Google's clients want credentials. */
const authClient = new OAuth2Client();
authClient.setCredentials({ access_token: PLACEHOLDER_KEY });

const gemini = (url: string) =>
  new GoogleGenAI({
    ...{ vertexai: true, project: 'my-project', location: 'europe-west1' },
    googleAuthOptions: { authClient },
    httpOptions: { baseUrl: baseOf(url) },
  }).models;
const claude = (url: string) =>
  new AnthropicVertex({
    ...{ baseURL: `${baseOf(url)}/v1`, region: 'europe-west1', projectId: 'my-project' },
    ...{ authClient, maxRetries: 0 },
  }).messages;

const asked = { model: 'gemini-2.5-flash', contents: 'Hi', config: { maxOutputTokens: 100 } };
const message = {
  model: 'claude-haiku-4-5@20251001',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Hi' }],
};

/** Each kind of call with its official client: the text of the answer. */
const CALLS: Readonly<Record<string, (url: string) => Promise<string>>> = {
  Gemini: async (url) => (await gemini(url).generateContent(asked)).text ?? '',
  'Gemini, streamed': async (url) => {
    let text = '';
    for await (const each of await gemini(url).generateContentStream(asked)) text += each.text ?? '';
    return text;
  },
  Claude: async (url) => {
    const { content } = await claude(url).create(message);
    return content[0]?.type === 'text' ? content[0].text : '';
  },
  'Claude, streamed': async (url) => {
    let text = '';
    for await (const each of await claude(url).create({ ...message, stream: true }))
      if (each.type === 'content_block_delta' && each.delta.type === 'text_delta') text += each.delta.text;
    return text;
  },
};

describe.each(Object.entries(CALLS))('%s', (_name, call) => {
  test("is sent with an access token of the service account, and nothing of the holder's credential", async () => {
    const { url } = await issue();
    expect(await call(url)).toBe('Hello');
    const all = google.seen.flatMap(({ url: path, rawHeaders, body }) => [path, ...rawHeaders, String(body)]);
    expect(all.join('\n')).not.toContain(PLACEHOLDER_KEY);
    expect(google.seen.at(-1)?.headers.authorization).toBe('Bearer ya29.token-1');
    expect(google.assertions).toMatchObject([
      {
        iss: SERVICE_ACCOUNT.client_email,
        scope: 'https://www.googleapis.com/auth/cloud-platform',
        aud: `${google.url}/token`,
      },
    ]);
  });

  test('is charged by its usage under a cost limit', async () => {
    const { url } = await issue({ cost_limit: 100_000 });
    expect(await call(url)).toBe('Hello');
    const spent = await eventually(async () => {
      const status = (await (await fetch(baseOf(url))).json()) as { held: number; spent: number };
      return status.held === 0 ? status.spent : undefined;
    });
    expect(spent).toBe(20 * 1 + 7 * 5);
  });
});

const post = (url: string, text = 'Hi') =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-user-project': 'another-project' },
    body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text }] }] }),
  });

test('50 simultaneous calls fetch one token, and further calls share it', async () => {
  const { url } = await issue();
  const answers = await Promise.all(Array.from({ length: 50 }, () => post(url)));
  expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
  await post(url);
  expect(google.assertions).toHaveLength(1);
  expect(google.seen.every(({ headers }) => headers['x-goog-user-project'] === undefined)).toBe(true);
});

test('a token that is about to expire is replaced', async () => {
  google.tokens.seconds = 0;
  const { url } = await issue();
  await post(url);
  await post(url);
  expect(google.assertions).toHaveLength(2);
});

test('a token that gets a 401 is replaced for the next call, and at most once in ten seconds', async () => {
  const { url } = await issue();
  const statuses = async (calls: number) => {
    const seen: number[] = [];
    for (let i = 0; i < calls; i++) seen.push((await post(url)).status);
    return seen;
  };
  expect(await statuses(1)).toEqual([200]);
  google.revoked.add('ya29.token-1');
  expect(await statuses(2)).toEqual([401, 200]);
  expect(google.seen.at(-1)?.headers.authorization).toBe('Bearer ya29.token-2');
  google.revoked.add('ya29.token-2');
  expect(await statuses(3)).toEqual([401, 401, 401]);
  expect(google.assertions).toHaveLength(2);
});

test('without a token a call is refused with a code, and its use is returned', async () => {
  google.tokens.are = 'denied';
  const { url } = await issue({ max_uses: 1 });
  const refused = await post(url);
  const text = await refused.text();
  expect([refused.status, refused.headers.get('x-presign-code') ?? text]).toEqual([
    502,
    expect.stringContaining('upstream_auth_failed'),
  ]);
  expect(text).toContain('invalid_grant');
  expect(text).not.toContain('Invalid JWT');
  google.tokens.are = 'given';
  expect((await post(url)).status).toBe(200);
  expect(stack.logs.join('')).not.toMatch(/PRIVATE KEY|eyJ/);
});

test('an error that quotes the access token does not show it', async () => {
  const { url } = await issue();
  const text = await (await post(url, 'quote the token')).text();
  expect(text).toMatch(/Invalid token \*+/);
  expect(stack.logs.join('')).not.toContain('ya29.');
});

const small = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

test.each([
  ['one word', 'AIza-example'],
  [
    'a token endpoint of its own',
    JSON.stringify({ ...SERVICE_ACCOUNT, token_uri: 'https://evil.example/token' }),
  ],
  ['no private key', JSON.stringify({ ...SERVICE_ACCOUNT, private_key: 'x' })],
  [
    'a key of another kind',
    JSON.stringify({ ...SERVICE_ACCOUNT, private_key: small.export({ type: 'pkcs8', format: 'pem' }) }),
  ],
  ['the credentials of a user', JSON.stringify({ ...SERVICE_ACCOUNT, type: 'authorized_user' })],
])('a key with %s is refused at issuing', async (_what, client_api_key) => {
  const answer = await stack.presign({ provider: 'vertex', path: PATH, client_api_key });
  const text = await answer.text();
  expect([answer.status, text]).toEqual([
    400,
    expect.stringContaining('client_api_key: expected the JSON file'),
  ]);
  expect(text).not.toMatch(/PRIVATE KEY|evil/);
});
