import { randomUUID } from 'node:crypto';
import { createPresign, type Presign } from '@presign/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { type ConsolePage, openConsole, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, callOnce, startConsole } from './console-stack.ts';

/** More than one page of the list of budgets. */
const BUDGETS = 60;
const OLDEST = 'Oldest';

describe.skipIf(!hasChromium)('with more budgets than one page of their list', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;
  let api: Presign;
  let virtualKey: string;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    const key = { name: 'Production', provider: 'sandbox', key: 'sk-sandbox' };
    virtualKey = (await api.createVirtualKey(key)).id;
    const scope = { virtual_key: virtualKey };
    await api.createBudget({ name: OLDEST, scope, max_uses: 1, window: 'month' });
    for (let at = 2; at < BUDGETS; at++)
      await api.createBudget({ scope: { external_user: `user-${at}` }, max_uses: 100, window: 'month' });
    await api.createBudget({ name: 'Newest', scope, max_uses: 100, window: 'day' });
    const { url } = await api.presign({ ...CHAT, virtual_key: virtualKey });
    expect((await callOnce(url, 'Hello')).status).toBe(200);
    await callsSettled(stack);
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const namesIn = (page: Page, table: string) =>
    page.getByRole('table', { name: table }).getByRole('rowheader').allInnerTexts();
  const expectFirst = (table: string) =>
    eventually(async () => (await namesIn(ui.page, table).catch(() => []))[0] === OLDEST);

  test('the oldest budget, which is the fullest, is first in Limits, on the home page and on the page of its key', async () => {
    await expectFirst('Limits that hold money or are near their end');
    await ui.page.getByText('All budgets and virtual keys,').waitFor();
    await ui.open('Limits');
    await expectFirst('Shared budgets');
    await ui.page.getByText(`1–50 of ${BUDGETS}`).waitFor();
    await ui.page.goto(`${stack.consoleUrl}#/keys/${virtualKey}`);
    await expectFirst('Shared budgets');
    expect(await namesIn(ui.page, 'Shared budgets')).toEqual([OLDEST, 'Newest']);
    expect(ui.problems).toEqual([]);
  });

  test('the column heads sort all budgets, and sort nothing while some budgets are not loaded', async () => {
    const { page } = ui;
    await ui.open('Limits');
    await expectFirst('Shared budgets');
    const head = page.getByRole('columnheader', { name: /^Budget/ });
    await head.getByRole('button').click();
    expect((await namesIn(page, 'Shared budgets'))[0]).toBe('Newest');
    // The issuer's answer, as it is when there are always more.
    await page.route(/\/v1\/budgets\?/, async (route) => {
      const { data } = await api.listBudgets({ limit: 100 });
      const rows = data.map((budget) => ({ ...budget, id: randomUUID() }));
      await route.fulfill({ json: { data: rows, next_cursor: 'more' } });
    });
    await page.reload();
    await page.getByText('There are more budgets: these are of the newest 1,000.').waitFor();
    expect(await head.getByRole('button').count()).toBe(0);
    expect(await ui.violations()).toEqual([]);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  test('while some budgets are not loaded, no screen says that there is none', async () => {
    const { page } = ui;
    await page.route(/\/v1\/budgets\?/, async (route) => {
      const { data } = await api.listBudgets({ limit: 100 });
      const rows = data.map((budget) => ({ ...budget, id: randomUUID(), deleted_at: 1 }));
      await route.fulfill({ json: { data: rows, next_cursor: 'more' } });
    });
    await ui.open('Limits');
    await page.reload();
    for (const [screen, none] of [
      ['Limits', 'No shared budget yet.'],
      ['Home', 'No limit holds money or is 80 % used.'],
      ['Issue', 'No budget.'],
    ] as const) {
      await ui.open(screen);
      await page.getByText('None among those read so far.').waitFor();
      expect(await page.getByText(none, { exact: true }).count(), screen).toBe(0);
    }
    await ui.open('Alerts');
    await page.getByRole('main').getByRole('button', { name: 'Create an alert' }).click();
    const form = page.getByRole('dialog').filter({ visible: true });
    await form.getByLabel('Fires when').selectOption('budget');
    await form.getByLabel('Or another budget, by its id').waitFor();
    expect(await form.getByText('There is no budget yet.').count()).toBe(0);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });
});
