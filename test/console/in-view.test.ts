import { createPresign, type Presign } from '@presign/client';
import { sharedBudgets } from '@presign/schema/budget-tables';
import { eq } from 'drizzle-orm';
import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, callOnce, startConsole } from './console-stack.ts';
import { addPastCalls } from './past-calls.ts';

const DAY_MS = 86_400_000;
const DOLLAR = 1_000_000;

describe.skipIf(!hasChromium)('without scrolling to the side', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let api: Presign;
  let ui: ConsolePage;
  let budget: string;
  /** Noon of each of these days ago. */
  const noon = (ago: number) => new Date((Math.floor(Date.now() / DAY_MS) - ago + 0.5) * DAY_MS);

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    const scope = { external_user: 'margaret' };
    const made = await api.createBudget({
      ...{ name: 'Margaret, plan Team', scope, window: 'lifetime' },
      cost_limit: 300 * DOLLAR,
    });
    budget = made.id;
    const issued = await stack.issue({ ...CHAT, client_api_key: 'sk-sandbox', external_user: 'margaret' });
    expect((await callOnce(issued.url, 'Hello')).status).toBe(200);
    const { url } = await stack.issue({
      ...{ ...CHAT, client_api_key: 'sk-sandbox', external_user: 'margaret', cost_limit: 1 },
    });
    expect((await callOnce(url, 'Hello')).status).toBe(402);
    await callsSettled(stack);
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account: await ownAccount(stack) };
    const call = (ago: number, dollars: number) =>
      row(of, {
        ...{ externalUser: 'margaret', costMicrousd: dollars * DOLLAR },
        ...{ startedAt: noon(ago), settledAt: noon(ago) },
      });
    await addPastCalls(stack, [call(3, 200.212607), call(2, 2)]);
    // As if the budget were older than these calls.
    await stack.db
      .update(sharedBudgets)
      .set({ createdAt: noon(5) })
      .where(eq(sharedBudgets.id, budget));
    ui = await openConsole(browser, stack, { timezoneId: 'UTC', locale: 'en-US' });
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const go = async (place: string, heading: string) => {
    await ui.page.setViewportSize({ width: 1_280, height: 800 });
    await ui.page.goto(`${stack.consoleUrl}#/${place}`);
    await ui.page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await settled(ui.page);
  };
  const sides = async (part: Locator) => {
    const { x = Number.NaN, width = Number.NaN } = (await part.boundingBox()) ?? {};
    return { left: x, right: x + width };
  };

  test('at 1,280 pixels, Requests shows the whole reason of a refusal', async () => {
    await go('requests?outcome=refused', 'Requests');
    const list = ui.page.getByRole('region', { name: 'Requests' });
    const reason = list.getByRole('cell', { name: /^Refused, because its URL had \$0\.000001 left/ });
    await reason.waitFor();
    expect((await sides(reason)).right).toBeLessThanOrEqual((await sides(list)).right);
  });

  test.each([
    ['Limits', 'limits', 'Limits', ['Draws on it', 'Full', 'At this pace', 'Spent']],
    ['a customer', 'customers/margaret', 'margaret', ['Full', 'At this pace', 'Spent', 'Limit', 'Resets']],
  ])(
    'at 1,280 pixels, %s shows how full a budget is and when it ends next to its buttons',
    async (_name, place, heading, heads) => {
      await go(place, heading);
      const table = ui.page.getByRole('region', { name: 'Shared budgets' });
      const head = (name: string) => table.getByRole('columnheader', { name, exact: true });
      const { left: buttons } = await sides(head('Change'));
      for (const name of heads)
        expect((await sides(head(name))).right, name).toBeLessThanOrEqual(buttons + 1);
    },
  );

  test.each([
    ['on a phone', 390],
    ['in a window of 1,000 pixels', 1_000],
    ['on a laptop', 1_280],
  ])('%s, a sum of hundreds of dollars is one line', async (_name, width) => {
    await go('customers/margaret', 'margaret');
    await ui.page.setViewportSize({ width, height: 844 });
    const sum = ui.page.locator('dd', { hasText: '$202.2126' }).first();
    await sum.waitFor();
    const lines = await ui.page.evaluate(`(() => {
      const text = [...document.querySelectorAll('dd')].find((each) => each.textContent.startsWith('$202.2126'));
      const range = document.createRange();
      range.selectNodeContents(text);
      return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
    })()`);
    expect(lines).toBe(1);
  });

  test('a time field shows AM or PM', async () => {
    await go('requests?from=2026-11-29T14:03Z&to=2026-11-29T14:04Z', 'Requests');
    // The field is as wide as its text wants to be, or wider.
    for (const width of [1_280, 1_000]) {
      await ui.page.setViewportSize({ width, height: 800 });
      const missing = await ui.page.evaluate(`(() => {
        const field = document.querySelector('[aria-label="From"]');
        const own = field.getBoundingClientRect().width;
        field.style.maxWidth = 'none';
        const wanted = field.getBoundingClientRect().width;
        field.style.maxWidth = '';
        return wanted - own;
      })()`);
      expect(missing).toBe(0);
    }
  });

  test('a budget shows what was left at the end of each day, and a day opens its requests', async () => {
    await go(`limits/${budget}`, 'Margaret, plan Team');
    const { page } = ui;
    const { current } = await api.getBudget({ id: budget });
    const left = 300 - (current?.live?.spent ?? 0) / DOLLAR;
    const day = page.getByRole('slider', { name: 'Day of the chart' });
    await day.focus();
    const texts: string[] = [];
    for (const _ of [0, 1, 2, 3, 4]) {
      texts.push((await day.getAttribute('aria-valuetext')) ?? '');
      await page.keyboard.press('ArrowLeft');
    }
    expect(texts.map((text) => text.replace(/^.*left /, ''))).toEqual(
      [left, left, left, left + 2, 300].map((dollars) => `$${Math.min(300, dollars).toFixed(2)}`),
    );
    // Back to the second of the two days with calls.
    for (const _ of [0, 1, 2]) await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    const rows = page.getByRole('table', { name: 'Requests' }).locator('tbody tr');
    await eventually(async () => (await rows.count()) === 1);
    expect(await rows.innerText()).toContain('$2.00');
    expect(ui.problems).toEqual([]);
  });

  test('a budget without an end that lasts for ages says so, and counts its pace from its creation', async () => {
    await go('limits', 'Limits');
    const pace = ui.page.getByRole('row', { name: /Margaret/ }).locator('td[data-head="At this pace"]');
    expect(await pace.innerText()).toBe('lasts over a year');
    await api.changeBudget({ id: budget, cost_limit: 30 });
    const soon = await api.getBudget({ id: budget });
    expect(soon.current?.live?.spent).toBeGreaterThan(5);
    const spent = soon.current?.live?.spent ?? 0;
    const emptyOn = () => {
      const at = Date.now() + ((30 - spent) / spent) * (Date.now() - noon(5).getTime());
      return new Date(at).toLocaleDateString('en-US', { month: 'short', day: 'numeric', timeZone: 'UTC' });
    };
    await eventually(async () => (await pace.innerText().catch(() => '')) === `empty on ${emptyOn()}`);
    await api.changeBudget({ id: budget, cost_limit: 300 * DOLLAR });
    expect(ui.problems).toEqual([]);
  });

  test('a budget links to the requests of its window', async () => {
    await go(`limits/${budget}`, 'Margaret, plan Team');
    await ui.page.getByRole('link', { name: 'Requests of this window' }).click();
    const rows = ui.page.getByRole('table', { name: 'Requests' }).locator('tbody tr');
    await eventually(async () => (await rows.count()) === 4);
  });
});
