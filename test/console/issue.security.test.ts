import type { Browser, Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { type ConsolePage, openConsole, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';

const KEY = 'sk-sandbox-typed-into-a-form';

describe.skipIf(!hasChromium)('the issuing page', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let other: Upstream;
  let ui: ConsolePage;
  const requests: Request[] = [];

  beforeAll(async () => {
    const allow = { 'access-control-allow-origin': '*' };
    [stack, browser, other] = await Promise.all([
      startConsole(),
      openChromium(),
      startUpstream((_seen, response) => void response.writeHead(200, allow).end('{}')),
    ]);
    ui = await openConsole(browser, stack);
    ui.page.on('request', (request) => void requests.push(request));
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
    await other?.close();
  });

  const field = (name: string) => ui.page.locator(`[name="${name}"]`);
  const press = (name: string) => ui.page.getByRole('button', { name, exact: true }).click();
  const text = async (expression: string) => String(await ui.page.evaluate(`JSON.stringify(${expression})`));
  const KEPT = '[location.href, document.cookie, { ...localStorage }, { ...sessionStorage }, history.state]';

  /** Issues a URL and calls it. Returns the URL. */
  async function issueAndCall(): Promise<string> {
    await ui.open('Issue');
    await field('provider').fill('sandbox');
    await field('path').fill('/v1/chat/completions');
    await field('client_api_key').fill(KEY);
    await field('cost_limit').fill('0.05');
    await press('Issue');
    const url = await ui.page.getByLabel('The URL', { exact: true }).inputValue();
    await press('Call');
    await ui.page.getByText('The call has ended.').waitFor();
    return url;
  }

  test('leaves a typed secret and an issued URL out of the address, storage, history and logs', async () => {
    const before = Number(await text('history.length'));
    const url = await issueAndCall();
    const token = url.split('/')[5] ?? '';
    expect(token.length).toBeGreaterThan(100);
    expect(await text(KEPT)).not.toMatch(new RegExp(`${KEY}|${token}`));
    expect(await ui.page.evaluate('indexedDB.databases().then((all) => all.length)')).toBe(0);
    expect(await ui.page.evaluate('caches.keys().then((all) => all.length)')).toBe(0);
    // The one step is the screen itself.
    expect(Number(await text('history.length'))).toBe(before + 1);
    const withKey = requests.filter((each) => `${each.url()} ${each.postData()}`.includes(KEY));
    expect(withKey.map((each) => `${each.method()} ${each.url()}`)).toEqual([
      `POST ${stack.issuerUrl}/v1/presign`,
    ]);
    const logs = stack.logs.join('\n');
    expect(logs).toContain('/v1/presign');
    for (const secret of [KEY, token]) expect(logs).not.toContain(secret);

    await ui.open('Explore');
    const html = await text('document.documentElement.outerHTML');
    const fields = await text("Array.from(document.querySelectorAll('input'), (each) => each.value)");
    for (const secret of [KEY, token]) expect(html + fields).not.toContain(secret);
    await ui.page.goBack();
    await ui.page.getByRole('heading', { name: 'Issue a URL' }).waitFor();
    await field('client_api_key').waitFor();
    expect(await field('client_api_key').inputValue()).toBe('');
    await ui.page.reload();
    await field('client_api_key').waitFor();
    expect(await field('client_api_key').inputValue()).toBe('');
  });

  test('calls the gateway without a cookie and without a referrer', async () => {
    requests.length = 0;
    await issueAndCall();
    const calls = requests.filter((each) => each.url().startsWith(String(stack.gatewayUrls[0])));
    expect(calls.filter((each) => each.method() === 'POST')).toHaveLength(1);
    for (const call of calls) {
      const headers = await call.allHeaders();
      expect([headers.cookie, headers.referer, headers.authorization]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    }
  });

  test('contacts the issuer and the gateway, and no other server', async () => {
    await ui.page.evaluate(
      "document.addEventListener('securitypolicyviolation', (event) => { window.violated = event.effectiveDirective; })",
    );
    const reach = (url: string) => ui.page.evaluate(`fetch('${url}').then(() => 'reached', () => 'blocked')`);
    expect(await reach(`${stack.issuerUrl}/healthz`)).toBe('reached');
    expect(await reach(`${stack.gatewayUrls[0]}/mcp/bundle/x`)).toBe('reached');
    expect(await reach(other.url)).toBe('blocked');
    expect(await ui.page.evaluate('window.violated')).toBe('connect-src');
    expect(other.seen).toEqual([]);
  });

  test('has no native form submission, so that a broken script puts no field into an address', async () => {
    await ui.open('Issue');
    await field('client_api_key').fill(KEY);
    const refused = await ui.page.evaluate(`new Promise((resolve) => {
      document.addEventListener('securitypolicyviolation', (event) => resolve(event.effectiveDirective));
      document.querySelector('form').submit();
    })`);
    expect(refused).toBe('form-action');
    expect(await text('location.href')).not.toContain(KEY);
    expect(requests.filter((each) => each.url().includes(KEY))).toEqual([]);
  });
});
