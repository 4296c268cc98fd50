import { createPresign } from '@presign/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, takePicture } from '../console/console-page.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { urlOf } from '../mcp/holder.ts';
import { REAL_KEY } from '../sdk/keys.ts';

const CHAT = '/v1/chat/completions';

describe.skipIf(!hasChromium)('a holder who opens a URL in a browser', () => {
  let stack: Stack;
  let browser: Browser;
  let page: Page;
  const requests: string[] = [];
  const problems: string[] = [];

  beforeAll(async () => {
    [stack, browser] = await Promise.all([
      startStack({ providers: { openai: { base_url: 'http://127.0.0.1:9' } } }),
      openChromium(),
    ]);
    page = await browser.newPage();
    page.on('request', (request) => requests.push(request.url()));
    page.on('console', (message) => problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(error.message));
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  /** The policy of the page stops axe, too, so axe reads the page without it. */
  async function violationsOf(url: string): Promise<string[]> {
    const copy = await browser.newPage();
    await copy.route('**', async (route) => {
      const response = await route.fetch();
      const { 'content-security-policy': _none, ...headers } = response.headers();
      await route.fulfill({ response, headers });
    });
    await copy.goto(url);
    const found = await audit(copy);
    await copy.close();
    return found;
  }

  test('reads what it allows and what is left, and the page requests nothing else', async () => {
    const { url } = await stack.issue({
      ...{ provider: 'openai', path: CHAT, client_api_key: REAL_KEY, models: ['gpt-4o-mini'] },
      ...{ max_uses: 20, cost_limit: 250_000, calls_per_minute: 10, expires_in: 3_600 },
    });
    await page.goto(url);
    await page.getByRole('heading', { level: 1, name: 'A URL for openai' }).waitFor();
    await page.getByText('20 of 20 left').waitFor();
    await page.getByText('$0.25 of $0.25 left').waitFor();
    expect(await page.evaluate('getComputedStyle(document.querySelector("main")).maxWidth')).not.toBe('none');
    await takePicture(page, 'holder-page', 620);
    expect(requests).toEqual([url]);
    expect(problems).toEqual([]);
    expect(await violationsOf(url)).toEqual([]);
  });

  test('reads what is left of a shared budget of the URL, and when the budget resets', async () => {
    const api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    await api.createBudget({
      ...{ name: 'Ada', scope: { external_user: 'adam' }, window: 'month', visible: true },
      ...{ cost_limit: 3_000_000, max_uses: 40 },
    });
    const { url } = await stack.issue({
      ...{ provider: 'openai', path: CHAT, client_api_key: REAL_KEY, external_user: 'adam' },
    });
    await page.goto(url);
    const budget = page.locator('h3', { hasText: 'A budget of this URL and others' }).locator('+ dl');
    const facts = (await budget.locator('dt').allInnerTexts()).map(async (name, at) => [
      name.trim(),
      (await budget.locator('dd').nth(at).innerText()).trim(),
    ]);
    const first = new Date();
    const resets = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 1));
    expect(await Promise.all(facts)).toEqual([
      ['Calls', '40 of 40 left'],
      ['Money', '$3.00 of $3.00 left'],
      ['Resets', `${resets.toISOString().slice(0, 10)} 00:00:00 UTC`],
    ]);
    expect(problems).toEqual([]);
    expect(await violationsOf(url)).toEqual([]);
  });

  test('copies a whole program with the keyboard alone, without script', async () => {
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('curl');
    await page.keyboard.press('ControlOrMeta+a');
    const [selected, whole] = (await page.evaluate(`(({ value, selectionStart, selectionEnd }) =>
      [value.slice(selectionStart, selectionEnd), value])(document.activeElement)`)) as string[];
    expect(selected).toBe(whole);
    expect(selected).toMatch(/^curl "\$PRESIGN_URL"/);
  });

  test('reads whole lines on a phone', async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    const wide = await page.evaluate(`[document.documentElement, ...document.querySelectorAll('textarea')]
      .filter((each) => each.scrollWidth > each.clientWidth)
      .map((each) => each.outerHTML.slice(0, 80))`);
    expect(wide).toEqual([]);
    await page.setViewportSize({ width: 1_280, height: 720 });
  });

  test('gets the configuration of a client from the page of a bundle, with the keyboard alone', async () => {
    const bundle = await stack.issueMcp({
      servers: [{ name: 'docs', url: 'http://127.0.0.1:9/mcp', transport: 'http' }],
    });
    await page.goto(bundle.bundle_url);
    await page.getByRole('heading', { level: 1, name: 'A bundle of MCP servers' }).waitFor();
    expect(await violationsOf(bundle.bundle_url)).toEqual([]);
    await page.getByRole('link', { name: 'cursor' }).focus();
    const loaded = page.waitForResponse(/format=cursor/);
    await page.keyboard.press('Enter');
    const answer = await loaded;
    expect(answer.request().headers()).not.toHaveProperty('referer');
    expect(await answer.json()).toEqual({ mcpServers: { docs: { url: urlOf(bundle, 'docs') } } });
    await page.goto(urlOf(bundle, 'docs'));
    await page.getByRole('heading', { level: 1, name: 'The URL of an MCP server' }).waitFor();
    expect(await violationsOf(urlOf(bundle, 'docs'))).toEqual([]);
  });

  test('reads why a URL is refused', async () => {
    await page.goto(`${stack.gatewayUrls[0]}/llm/t/v4.public.none`);
    await page.getByRole('heading', { level: 1, name: 'This URL was refused' }).waitFor();
    await page.getByText('token_invalid').waitFor();
    expect(await violationsOf(page.url())).toEqual([]);
  });
});
