import { createPresign, type Presign } from '@presign/client';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { deferred, eventually } from '../harness/eventually.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, makeCalls, startConsole } from './console-stack.ts';

/** Names that mean something in an address, in HTML, in JavaScript, in CSV, or to an eye. */
const NAMES = [
  ...['<img src=x onerror=alert(1)>', '"><script>alert(1)</script>', '{{7*7}}', "o'neil; --"],
  ...['a/b?c#d&e=f%20g', '%', '%2F..%2F..', '../../keys', '.', '..', '*'],
  ...['__proto__', 'constructor', 'toString', 'null', '=1+1', '\u202Eevil', 'x'.repeat(255)],
];

describe.skipIf(!hasChromium)('the console, with hostile names and addresses', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let api: Presign;
  let ui: ConsolePage;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    for (const user of ['adam', 'grace', ...NAMES])
      await makeCalls(stack, { apiKey: stack.apiKey, user }, 'Hello', 1);
    await api.createBudget({
      name: 'Adam',
      scope: { external_user: 'adam' },
      cost_limit: 500_000,
      window: 'month',
    });
    await callsSettled(stack);
    ui = await openConsole(browser, stack, { timezoneId: 'Europe/Berlin' });
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  test('each name has its own page, which shows the name as text and its own call alone', async () => {
    for (const name of NAMES) {
      await ui.go(`customers/${encodeURIComponent(name)}`);
      await ui.page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
      await eventually(async () => /^Calls\n1$/m.test(await ui.text()));
      await ui.page.getByRole('link', { name: 'All requests' }).click();
      const rows = ui.table('Requests').locator('tbody tr');
      await eventually(async () => (await rows.count()) === 1);
      expect(await rows.getByRole('link', { name, exact: true }).count(), name).toBe(1);
    }
    expect(ui.problems).toEqual([]);
  }, 300_000);

  test.each([
    'time=2026-99',
    'time=9999-12',
    'time=__proto__',
    'time=2026-11-30',
    'zone=Mars%2FX',
    'from=99999999999999&to=1e99',
    'from=-1',
  ])('with %s in its address, a page shows a usual time, and so do the pages after it', async (time) => {
    await ui.go(`explore?${time}`);
    await ui.page.getByRole('heading', { level: 1, name: 'Explore' }).waitFor();
    await eventually(async () => /^Calls\n\d+$|from:/m.test(await ui.text()));
    expect(await ui.page.getByLabel('Time', { exact: true }).inputValue()).toMatch(/^30d$|^custom$/);
    await ui.open('Limits');
    await ui.page.getByRole('rowheader', { name: 'Adam' }).waitFor();
    expect(ui.problems).toEqual([]);
  });

  test('a page that fails says so, and the other pages still work', async () => {
    const own = await openConsole(browser, stack);
    await own.page.route(/\/v1\/budgets\?/, (route) =>
      route.fulfill({ json: { data: [{}], next_cursor: null } }),
    );
    // The first page shows budgets, too.
    await own.page.getByLabel('API key').fill(stack.apiKey);
    await own.page.getByRole('button', { name: 'Sign in' }).click();
    await own.page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Limits' }).click();
    await own.page.getByRole('alert').getByText('This page failed').waitFor();
    await own.page.unrouteAll();
    await own.open('Requests');
    await own.page.getByRole('table', { name: 'Requests' }).waitFor();
    await own.page.context().close();
  });

  test('the Back button also empties the field that has the focus', async () => {
    await ui.go('requests?outcome=passed');
    const { page } = ui;
    const field = page.getByLabel('User', { exact: true });
    await field.click();
    await page.keyboard.type('grace ');
    await eventually(async () => page.url().endsWith('external_user=grace'));
    await settled(page);
    expect(await field.inputValue()).toBe('grace ');
    await page.goBack();
    await eventually(async () => (await field.inputValue()) === '');
    await page.goForward();
    await eventually(async () => (await field.inputValue()) === 'grace');
    expect(await page.evaluate('document.activeElement.name')).toBe('external_user');
  });

  test('an answer that comes late does not replace that of a later filter', async () => {
    const { page } = ui;
    const held = deferred();
    let isAsked = false;
    await page.route(/\/v1\/calls\?.*external_user=adam/, async (route) => {
      isAsked = true;
      await held.promise;
      await route.continue().catch(() => undefined);
    });
    await ui.go('requests?external_user=grace');
    const users = ui.table('Requests').locator('td[data-head="User"]');
    await eventually(async () => (await users.allInnerTexts()).join() === 'grace');
    await page.goto(`${stack.consoleUrl}#/requests?external_user=adam`);
    await eventually(async () => isAsked);
    await page.goto(`${stack.consoleUrl}#/requests?external_user=grace`);
    held.resolve();
    await page.unrouteAll({ behavior: 'wait' });
    await eventually(async () => (await users.allInnerTexts()).join() === 'grace');
  });

  test('a dialog keeps its text when the window becomes as narrow as a phone, and is whole in it', async () => {
    await ui.go('limits');
    const { page } = ui;
    await page.getByRole('button', { name: 'Change Adam' }).click();
    const field = page.getByLabel('Limit in dollars');
    await field.fill('0.75');
    await page.setViewportSize({ width: 390, height: 844 });
    const dialog = page.getByRole('dialog');
    await eventually(async () => ((await dialog.boundingBox())?.width ?? 999) < 390);
    expect(await field.inputValue()).toBe('0.75');
    await page.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect((await api.listBudgets()).data[0]?.cost_limit).toBe(750_000);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test('without a network, a list says that it is not refreshed, a change fails at once, and both work again', async () => {
    const own = await openConsole(browser, stack);
    await signIn(own, stack.apiKey);
    await own.open('Limits');
    const { page } = own;
    await page.getByRole('rowheader', { name: 'Adam' }).waitFor();
    await page.context().setOffline(true);
    await page.getByRole('main').getByRole('alert').first().waitFor();
    expect(await page.getByRole('rowheader', { name: 'Adam' }).count()).toBe(1);
    await page.getByRole('button', { name: 'Change Adam' }).click();
    await page.getByLabel('Limit in dollars').fill('0.9');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.context().setOffline(false);
    await eventually(async () => (await page.getByRole('alert').count()) === 0);
    expect((await api.listBudgets()).data[0]?.cost_limit).not.toBe(900_000);
    await page.context().close();
  });
});
