import { readFileSync } from 'node:fs';
import axe from 'axe-core';
import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cookieOf } from '../console/console-stack.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { type Stack, startStack } from '../harness/stack.ts';

/** Rules of axe that Scalar's own elements break. */
const OF_SCALAR = [
  'button-name',
  'color-contrast',
  'label-content-name-mismatch',
  'landmark-unique',
  'link-name',
  'scrollable-region-focusable',
];

describe.skipIf(!hasChromium)('/docs/api in a browser that is signed in to the console', () => {
  let stack: Stack;
  let browser: Browser;
  let page: Page;
  let address: string;
  const requests: Request[] = [];
  const problems: string[] = [];

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startStack({ providers: {} }), openChromium()]);
    address = `${stack.issuerUrl}/docs/api`;
    page = await openDocs('light');
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  async function openDocs(colorScheme: 'light' | 'dark'): Promise<Page> {
    const context = await browser.newContext({ colorScheme, reducedMotion: 'reduce' });
    const [name = '', value = ''] = (await cookieOf(stack, stack.apiKey)).split('=');
    await context.addCookies([{ name, value, url: stack.issuerUrl, httpOnly: true, sameSite: 'Strict' }]);
    const opened = await context.newPage();
    opened.on('request', (request) => requests.push(request));
    opened.on('console', (message) => {
      if (message.type() !== 'info') problems.push(message.text());
    });
    opened.on('pageerror', (error) => problems.push(error.message));
    await opened.goto(address);
    await opened.getByRole('complementary').getByRole('link', { name: 'Issuing' }).waitFor();
    return opened;
  }

  const inNavigation = (name: string | RegExp) =>
    page.getByRole('complementary').getByRole('link', { name, exact: true });

  test('operations of the issuer and routes of the gateway share one navigation', async () => {
    for (const [tag, operation, path] of [
      ['Issuing', /^Issue a signed URL/, '/v1/presign'],
      ['LLM calls', /^Call the provider/, '/llm/t/{token}/{path}'],
    ] as const) {
      await inNavigation(tag).click();
      await inNavigation(operation).click();
      await page.getByRole('heading', { level: 3, name: operation }).waitFor();
      await page.getByRole('main').getByText(path).first().waitFor();
    }
  });

  test('a link in the text leads to a reference page', async () => {
    const opened = await openDocs('light');
    await opened.getByRole('complementary').getByRole('link', { name: 'LLM calls', exact: true }).click();
    await opened.getByRole('main').getByRole('link', { name: 'LLM calls', exact: true }).click();
    await opened.waitForURL(`${stack.issuerUrl}/docs/reference/calls`);
    await opened.getByRole('heading', { level: 1, name: 'Calls' }).waitFor();
    await opened.context().close();
  });

  test('the page has an opaque origin, no access to storage or cookies of the console, and can reach no address', async () => {
    expect(await page.evaluate('self.origin')).toBe('null');
    await expect(page.evaluate('document.cookie')).rejects.toThrow('sandboxed');
    await expect(page.evaluate(`fetch('${stack.issuerUrl}/v1/limits')`)).rejects.toThrow('Failed to fetch');
    expect(problems.splice(0).every((problem) => problem.includes('Content Security Policy'))).toBe(true);
    const script = requests.find((request) => request.url().endsWith('/docs/api/scalar.js'));
    expect(await script?.allHeaders()).not.toHaveProperty('cookie');
    expect(await page.context().cookies()).toHaveLength(1);
  });

  test.each([
    ['light', 'rgb(255, 255, 255)'],
    ['dark', 'rgb(15, 15, 15)'],
  ] as const)(
    'in %s the page requests only itself and its script, reports no error, and axe finds only faults of Scalar',
    async (scheme, color) => {
      requests.splice(0);
      const opened = await openDocs(scheme);
      expect(await opened.evaluate('getComputedStyle(document.body).backgroundColor')).toBe(color);
      await opened.evaluate(axe.source);
      const found = (await opened.evaluate('axe.run().then(({ violations }) => violations)')) as {
        id: string;
      }[];
      expect(found.map(({ id }) => id).filter((rule) => !OF_SCALAR.includes(rule))).toEqual([]);
      await opened.setViewportSize({ width: 360, height: 740 });
      expect(await opened.evaluate('document.documentElement.scrollWidth')).toBe(360);
      await opened.context().close();
      const asked = requests.map((request) => request.url().split('#')[0]);
      expect(asked).toEqual([address, `${address}/scalar.js`]);
      expect(problems).toEqual([]);
    },
  );
});

test("the lockfile has Scalar without dependencies, because Scalar's one file contains them", () => {
  const lockfile = readFileSync(new URL('../../pnpm-lock.yaml', import.meta.url), 'utf8');
  expect(lockfile).toMatch(/^ {2}'@scalar\/api-reference@[\d.]+': \{\}$/m);
});
