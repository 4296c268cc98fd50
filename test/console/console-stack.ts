import { buildConsole } from '@presign/console/build';
import { startSandboxLlm } from '@presign/local';
import { expect } from 'vitest';
import { type Stack, type StackOptions, startStack } from '../harness/stack.ts';

/** A stack whose issuer serves the console, with the sandbox as its provider. */
export type ConsoleStack = Stack & { readonly consoleUrl: string; readonly consoleDir: string };

const PRICE = { input: 150_000, output: 600_000 };

export async function startConsole(options: Partial<StackOptions> = {}): Promise<ConsoleStack> {
  const [sandbox, consoleDir] = await Promise.all([startSandboxLlm(), buildConsole()]);
  const pricing = { 'sandbox-1': PRICE, 'sandbox-mini': PRICE };
  const provider = { extends: ['openai', 'anthropic'], base_url: sandbox.url, pricing };
  const stack = await startStack({
    ...options,
    providers: { sandbox: provider, ...options.providers },
    issuer: { consoleDir, ...options.issuer },
  });
  const close = async () => {
    await stack.close();
    await sandbox.close();
  };
  return { ...stack, consoleDir, consoleUrl: `${stack.issuerUrl}/console/`, close };
}

/** Headers that the browser sends with a request of the console, except the cookie. */
export const FROM_CONSOLE = { 'x-presign-console': '1', 'sec-fetch-site': 'same-origin' };

export const signInWith = (
  { issuerUrl }: Pick<Stack, 'issuerUrl'>,
  apiKey: string,
  headers: Record<string, string> = FROM_CONSOLE,
): Promise<Response> =>
  fetch(`${issuerUrl}/console/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ api_key: apiKey }),
  });

/** Signs in, and returns the cookie as a browser sends it. */
export async function cookieOf(stack: Pick<Stack, 'issuerUrl'>, apiKey: string): Promise<string> {
  const answer = await signInWith(stack, apiKey);
  expect(answer.status, await answer.text()).toBe(204);
  return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
}

export type Issuing = { readonly apiKey: string; readonly user: string; readonly model?: string };

/** The least that issues a URL, together with a key. */
export const CHAT = { provider: 'sandbox', path: '/v1/chat/completions' };

/** Issues a URL of an account, and calls it some times. Returns its session. */
export async function makeCalls(
  stack: Stack,
  { apiKey, user, model = 'sandbox-1' }: Issuing,
  question: string,
  times: number,
): Promise<string> {
  const body = {
    ...{ ...CHAT, client_api_key: 'sk-sandbox' },
    ...{ external_user: user, cost_limit: 2_000_000, max_uses: 50 },
  };
  const issued = await stack.presign(body, { authorization: `Bearer ${apiKey}` });
  const { url, session_id } = (await issued.json()) as { url: string; session_id: string };
  expect(issued.status).toBe(200);
  for (let call = 0; call < times; call++) {
    const answer = await callOnce(url, question, model);
    expect(answer.status, await answer.text()).toBe(200);
  }
  return session_id;
}

/** Issues a URL of an account, and calls it as often as it is to be refused. */
export async function makeRefusals(
  stack: Stack,
  { apiKey, user }: Issuing,
  code: string,
  times: number,
): Promise<void> {
  const body = { ...CHAT, client_api_key: 'sk-sandbox' };
  const issued = await stack.presign({ ...body, external_user: user }, { authorization: `Bearer ${apiKey}` });
  const { url } = (await issued.json()) as { url: string };
  for (let call = 0; call < times; call++)
    expect(await (await callOnce(url, 'Hello')).json()).toMatchObject({ error: { code } });
}

export const callOnce = (url: string, question: string, model = 'sandbox-1'): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, max_tokens: 500, messages: [{ role: 'user', content: question }] }),
  });
