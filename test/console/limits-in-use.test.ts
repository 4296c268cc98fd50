import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { type ConsolePage, openConsole, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, callOnce, startConsole } from './console-stack.ts';

describe.skipIf(!hasChromium)('the limits on the home page', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let slow: Upstream;
  let ui: ConsolePage;
  let key: string;
  let answerAll = () => {};
  const released = new Promise<void>((resolve) => {
    answerAll = resolve;
  });

  beforeAll(async () => {
    slow = await startUpstream(async (_seen, response) => {
      await released;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"model":"slow-1","usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}');
    });
    const pricing = { 'slow-1': { input: 150_000, output: 600_000 } };
    const provider = { extends: ['openai'], base_url: slow.url, pricing };
    [stack, browser] = await Promise.all([startConsole({ providers: { slow: provider } }), openChromium()]);
    const stored = await send('POST', '/v1/virtual-keys', {
      ...{ name: 'Staging', provider: 'sandbox', key: 'sk-sandbox', budget: { max_uses: 5 } },
    });
    key = stored.id ?? '';
    const { url = '' } = await send('POST', '/v1/presign', {
      ...{ ...CHAT, virtual_key: key, external_user: 'alan', max_uses: 1 },
    });
    expect((await callOnce(url, 'Hello')).status).toBe(200);
    await callsSettled(stack);
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    answerAll();
    await leaveChromium();
    await stack?.close();
    await slow?.close();
  });

  const send = async (method: string, path: string, body: object) => {
    const answer = await fetch(`${stack.issuerUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    expect(answer.status, text).toBeLessThan(300);
    return JSON.parse(text) as { id?: string; url?: string };
  };
  const limits = () => ui.page.getByRole('region', { name: /^Limits that hold money/ });
  const row = (name: RegExp) => limits().getByRole('row', { name });
  const cells = (name: RegExp) => row(name).getByRole('cell').allInnerTexts();
  const facts = () => ui.page.locator('main').innerText();

  test('include a URL that has used its last call, with a link to its page', async () => {
    await row(/ of alan/).waitFor();
    expect(await cells(/ of alan/)).toEqual(['URL', '$0.00', '$0.000009', '100 %']);
    expect(await facts()).toContain('Near a limit\n1');
    expect(
      await row(/ of alan/)
        .getByRole('link')
        .getAttribute('href'),
    ).toMatch(/^#\/urls\/url\/[0-9a-f-]{36}/);
  });

  test('include a virtual key once its budget is nearly used, and not before', async () => {
    expect(await row(/^Staging/).count()).toBe(0);
    await send('PATCH', `/v1/virtual-keys/${key}`, { budget: { max_uses: 1 } });
    await row(/^Staging/).waitFor();
    expect(await cells(/^Staging/)).toEqual(['virtual key', '$0.00', '$0.000009', '100 %']);
  });

  test('include a budget while a call holds its money, with the held amount', async () => {
    await send('POST', '/v1/budgets', {
      ...{ name: 'Team', scope: { external_user: 'adam' }, cost_limit: 25_000_000, window: 'month' },
    });
    const { url = '' } = await send('POST', '/v1/presign', {
      ...{ ...CHAT, provider: 'slow', client_api_key: 'sk-slow', external_user: 'adam' },
    });
    const call = callOnce(url, 'Hello', 'slow-1');
    await row(/^Team/).waitFor();
    const [kind, held, spent, full] = await cells(/^Team/);
    expect([kind, spent, full]).toEqual(['budget', '$0.00', '0 %']);
    expect(held).toMatch(/^\$0\.000[1-9]/);
    expect(await facts()).toContain('Holding money\n1');
    answerAll();
    expect((await call).status).toBe(200);
    await eventually(async () => (await row(/^Team/).count()) === 0);
    expect(ui.problems).toEqual([]);
    expect(await ui.violations()).toEqual([]);
  });
});
