import axe from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { takePicture } from '../console/console-page.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { type Stack, startStack } from '../harness/stack.ts';

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 800 };

describe.skipIf(!hasChromium)('the documentation in a browser', () => {
  let stack: Stack;
  let browser: Browser;
  const problems: string[] = [];
  const asked = new Set<string>();

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startStack({ providers: {} }), openChromium()]);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  async function open(route: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    page.on('request', (request) => asked.add(request.url()));
    page.on('console', (message) => problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(`${stack.issuerUrl}/docs/${route}`);
    return page;
  }

  const PAGES = [
    '',
    'quickstart',
    'guides/issue-a-url',
    'guides/console',
    'reference/metrics',
    'reference/calls',
  ];

  test.each([
    { scheme: 'light', viewport: PHONE },
    { scheme: 'light', viewport: DESKTOP },
    { scheme: 'dark', viewport: PHONE },
    { scheme: 'dark', viewport: DESKTOP },
  ] as const)(
    'axe finds nothing in $scheme at $viewport.width px, and no page is wider than the window',
    async ({ scheme: colorScheme, viewport }) => {
      const page = await open('', { colorScheme, viewport });
      for (const route of PAGES) {
        await page.goto(`${stack.issuerUrl}/docs/${route}`);
        expect(await violationsOf(page), route).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth'), route).toBe(viewport.width);
      }
      // All lists are unfolded.
      await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true");
      expect(await violationsOf(page)).toEqual([]);
      await page.keyboard.press('/');
      await page.keyboard.type('revoke');
      await page.getByRole('status').filter({ hasText: 'results' }).waitFor();
      expect(await violationsOf(page)).toEqual([]);
      const background = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      expect(background).toBe(colorScheme === 'dark' ? 'rgb(20, 22, 26)' : 'rgb(255, 255, 255)');
      await page.context().close();
    },
  );

  test('a key opens the search, which finds "revoke" and opens its page without a mouse', async () => {
    const page = await open('reference/metrics');
    await page.keyboard.press('/');
    const field = page.getByRole('searchbox', { name: 'Search the documentation' });
    await field.and(page.locator(':focus')).waitFor();
    await page.keyboard.type('revoke');
    const results = page.getByRole('dialog').getByRole('listitem');
    const first = results.first().getByRole('link');
    await first.filter({ hasText: 'Revoke a URL' }).waitFor();
    // The excerpt is a sentence of the page, with what was searched marked.
    const text = (await first.textContent()) ?? '';
    expect(text).toMatch(/^Revoke a URLSend DELETE for a grant|^Revoke a URL… /);
    expect(text).not.toMatch(/\]\(|```|\| -/);
    expect((await first.locator('mark').first().textContent())?.toLowerCase()).toBe('revoke');
    await page.keyboard.press('ArrowDown');
    await first.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('ArrowUp');
    await field.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`${stack.issuerUrl}/docs/guides/revoke-a-url`);
    await page.getByRole('heading', { level: 1, name: 'Revoke a URL' }).waitFor();
    await page.context().close();
  });

  test.each([
    ['revoke everything', 'guides/revoke-a-url#revoke-everything-that-an-api-key-issued'],
    ['uses_exhausted', 'reference/errors'],
    ['METRICS_PORT', 'reference/configuration'],
    ['cost_limit', 'guides/limit-spending'],
  ])('a search for "%s" has %s among its first results', async (query, route) => {
    const page = await open('');
    await page.getByRole('button', { name: /^Search/ }).click();
    await page.keyboard.type(query);
    await page
      .getByRole('status')
      .filter({ hasText: /\d results?/ })
      .waitFor();
    const links = await page
      .getByRole('dialog')
      .getByRole('link')
      .evaluateAll((all) => all.map((each) => String(Reflect.get(each, 'href'))));
    const first = links.slice(0, 6).map((link) => link.slice(`${stack.issuerUrl}/docs/`.length));
    expect(
      first.some((each) => each.startsWith(route)),
      first.join(),
    ).toBe(true);
    await page.context().close();
  });

  test("a search without a result says so, and Escape returns to the reader's place", async () => {
    const page = await open('guides/issue-a-url');
    const link = page.getByRole('main').getByRole('link').nth(3);
    await link.focus();
    await page.keyboard.press('/');
    await page.keyboard.type('zzzz (');
    await page.getByRole('status').filter({ hasText: '0 results' }).waitFor();
    // The first one empties the field.
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await link.and(page.locator(':focus')).waitFor();
    await page.context().close();
  });

  test('a request in three languages has tabs that keys can switch, and the next page keeps the choice', async () => {
    const page = await open('guides/issue-a-url');
    const tab = (name: string) => page.getByRole('tab', { name, exact: true });
    const shown = () => page.getByRole('tabpanel').textContent();
    expect(await page.getByRole('tab').allTextContents()).toEqual(['curl', 'Python', 'TypeScript']);
    expect(await shown()).toMatch(/^curl -s/);
    await tab('curl').focus();
    await page.keyboard.press('ArrowRight');
    expect(await shown()).toContain('import httpx');
    await page.keyboard.press('ArrowRight');
    expect(await shown()).toContain('await fetch');
    await page.keyboard.press('ArrowRight');
    expect(await tab('curl').getAttribute('aria-selected')).toBe('true');
    await tab('Python').click();
    await page.reload();
    expect(await shown()).toContain('import httpx');
    await page.context().close();
  });

  test('the first Tab skips the navigation, and a scrolling box can get the focus', async () => {
    const page = await open('reference/metrics', { viewport: PHONE });
    await page.keyboard.press('Tab');
    const focused = () => page.evaluate('document.activeElement.textContent');
    expect(await focused()).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await page.evaluate("document.activeElement.closest('article') !== null")).toBe(true);
    expect(
      await page.evaluate(
        "[...document.querySelectorAll('article pre, article .wide')].every((box) => (box.scrollWidth > box.clientWidth) === (box.tabIndex === 0))",
      ),
    ).toBe(true);
    expect(
      await page.evaluate("document.querySelectorAll('article .wide[tabindex]').length"),
    ).toBeGreaterThan(1);
    await page.context().close();
  });

  test('on a phone the navigation is folded, and reaches every group', async () => {
    const page = await open('guides/revoke-a-url', { viewport: PHONE });
    const link = page.getByRole('link', { name: 'Change what was issued', exact: true });
    const inNavigation = page.getByRole('navigation', { name: 'Documentation' }).and(page.locator('nav'));
    expect(await inNavigation.getByRole('link').count()).toBe(0);
    await page.getByText('All pages').click();
    await inNavigation.getByText('Operate').click();
    await inNavigation.getByRole('link', { name: 'Upgrade', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Upgrade' }).waitFor();
    expect(await link.count()).toBe(0);
    await page.context().close();
  });

  test('without JavaScript a page has its navigation, all programs, and no button without a function', async () => {
    const page = await open('guides/issue-a-url', { javaScriptEnabled: false });
    await page
      .getByRole('navigation', { name: 'Documentation' })
      .getByRole('link', { name: 'Revoke a URL' })
      .waitFor();
    await page
      .getByRole('navigation', { name: 'On this page' })
      .getByRole('link', { name: 'Choose the limits' })
      .click();
    await page.waitForURL(/#choose-the-limits$/);
    for (const program of ['curl -s "$ISSUER_URL/v1/presign"', 'import httpx', 'await fetch(`'])
      expect(await page.getByText(program).first().isVisible()).toBe(true);
    expect(await page.getByRole('button').count()).toBe(0);
    await page.getByRole('link', { name: 'Next: Change what was issued' }).click();
    await page.getByRole('heading', { level: 1, name: 'Change what was issued' }).waitFor();
    await page.context().close();
  });

  test('the contents look like the stored picture', async () => {
    const page = await open('');
    for (const name of ['Start', 'Issue', 'Limit', 'Use', 'Bill', 'Operate'])
      await page.getByRole('heading', { level: 2, name, exact: true }).waitFor();
    await takePicture(page, 'docs-page', 560, 1000);
    await page.context().close();
  });

  test('requests files only from the issuer, violates no policy and reports no error', async () => {
    // The tests above have opened pages, and the search.
    expect([...asked].some((url) => url.endsWith('/docs/search.json'))).toBe(true);
    expect([...asked].filter((url) => !url.startsWith(`${stack.issuerUrl}/docs/`))).toEqual([]);
    expect(problems).toEqual([]);
    const page = await open('');
    await expect(page.evaluate("fetch('http://127.0.0.1:1/')")).rejects.toThrow('Failed to fetch');
    await expect(page.evaluate("document.body.innerHTML = '<b>x</b>'")).rejects.toThrow('TrustedHTML');
    expect(problems.some((problem) => problem.includes('Content Security Policy'))).toBe(true);
    await page.context().close();
  });
});

type AxeResult = { id: string; nodes: { html: string; failureSummary?: string }[] };

async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = (await page.evaluate('axe.run().then(({ violations }) => violations)')) as AxeResult[];
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`);
}
