import { createPresign, type Presign } from '@presign/client';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { type ConsolePage, openConsole, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, callOnce, startConsole } from './console-stack.ts';

describe.skipIf(!hasChromium)('lists of the console', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;
  let api: Presign;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    const { url } = await issue('adam');
    expect((await callOnce(url, 'Hello')).status).toBe(200);
    await api.createWebhook({ url: 'http://127.0.0.1:9/first' });
    await api.createVirtualKey({ name: 'First', provider: 'sandbox', key: 'sk-sandbox' });
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const issue = (user: string) =>
    api.presign({ ...CHAT, client_api_key: 'sk-sandbox', external_user: user, max_uses: 5 });
  const row = (text: string) => ui.page.getByRole('row').filter({ hasText: text }).first();
  const dialog = () => ui.page.getByRole('dialog');
  /** The answers to the question of a list that arrive from now on. */
  const answersOf = (path: string) => {
    let answers = 0;
    ui.page.on('requestfinished', (request) => {
      if (new URL(request.url()).pathname === path) answers++;
    });
    return () => answers;
  };

  test.each([
    ['Requests', 'linus', async () => void (await callOnce((await issue('linus')).url, 'Hello'))],
    ['URLs', 'grace', () => issue('grace')],
    ['Keys', 'Backend', () => api.createApiKey({ name: 'Backend', scopes: ['read'] })],
    ['Keys', 'Second', () => api.createVirtualKey({ name: 'Second', provider: 'sandbox', key: 'sk-2' })],
    ['Webhooks', 'second', () => api.createWebhook({ url: 'http://127.0.0.1:9/second' })],
    ['Audit', 'Night jobs', () => api.createApiKey({ name: 'Night jobs', scopes: ['read'] })],
    ['Accounts', 'Initech', () => api.createAccount({ name: 'Initech' })],
    [
      'Alerts',
      'Daily',
      async () => {
        const spend = { window: 'day', time_zone: 'UTC', amount: 5 } as const;
        await api.createAlert({ name: 'Daily', condition: { spend } });
      },
    ],
  ])(
    '%s: an item created meanwhile appears without a reload',
    async (screen, name, make) => {
      await ui.open(screen);
      expect(await row(name).count()).toBe(0);
      await make();
      // The list of URLs moves on by the half minute.
      await row(name).waitFor({ timeout: 120_000 });
      expect(ui.problems).toEqual([]);
    },
    300_000,
  );

  test('an open dialog keeps its input while its list refreshes', async () => {
    const { page } = ui;
    const scope = (user: string) => ({ external_user: user });
    const names = () =>
      page.getByRole('table', { name: 'Shared budgets' }).getByRole('rowheader').allInnerTexts();
    await api.createBudget({ name: 'Low', scope: scope('low'), max_uses: 1, window: 'month' });
    await api.createBudget({ name: 'High', scope: scope('high'), max_uses: 4, window: 'month' });
    const [low, high] = [await issue('low'), await issue('high')];
    expect((await callOnce(high.url, 'Hello')).status).toBe(200);
    await ui.open('Limits');
    await eventually(async () => (await names()).join() === 'High,Low');
    for (const name of ['High', 'Low']) {
      await page.getByRole('button', { name: `Change ${name}` }).click();
      await dialog().getByLabel('Uses').fill('7');
      // The fuller one has a new place, which the page reads while the dialog is open.
      if (name === 'High') expect((await callOnce(low.url, 'Hello')).status).toBe(200);
      else await api.createBudget({ name: 'New', scope: { account: true }, max_uses: 100, window: 'month' });
      // The first answer may be older than the change.
      const answers = answersOf('/v1/budgets');
      await eventually(async () => answers() > 1);
      expect(await dialog().getByLabel('Uses').inputValue()).toBe('7');
      expect(await page.evaluate('document.activeElement.name')).toBe('uses');
      expect(await page.evaluate('document.querySelector("dialog[open]").matches(":modal")')).toBe(true);
      expect(await names()).toEqual(name === 'High' ? ['High', 'Low'] : ['Low', 'High']);
      await dialog().getByRole('button', { name: 'Cancel' }).click();
      // With the dialog closed, the list follows.
      const after = name === 'High' ? 'Low,High' : 'Low,High,New';
      await eventually(async () => (await names()).join() === after);
      expect(await page.evaluate('document.activeElement.textContent')).toBe(`Change ${name}`);
    }
  });

  test('the dialog of the last budget keeps its input when the budget is deleted elsewhere', async () => {
    const { page } = ui;
    await api.createBudget({ name: 'Last', scope: { external_user: 'last' }, max_uses: 9, window: 'month' });
    await ui.open('Limits');
    await page.getByRole('button', { name: 'Change Last' }).click();
    await dialog().getByLabel('Uses').fill('7');
    const { data } = await api.listBudgets();
    for (const { id, deleted_at: end } of data) if (end === null) await api.deleteBudget({ id });
    await page.getByRole('heading', { name: 'Deleted', includeHidden: true }).waitFor({ timeout: 60_000 });
    expect(await dialog().getByLabel('Uses').inputValue()).toBe('7');
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('No shared budget yet.').waitFor();
  });

  test('a half-typed filter keeps its text and the focus while its list refreshes', async () => {
    const { page } = ui;
    await ui.open('Requests');
    const field = page.getByLabel('User');
    await field.pressSequentially('ad');
    await page.waitForURL(/external_user=ad/);
    await page.getByText('No call fits.').waitFor();
    const answers = answersOf('/v1/calls');
    await eventually(async () => answers() > 1);
    expect(await field.inputValue()).toBe('ad');
    await page.keyboard.type('am');
    await row('adam').waitFor();
    expect(await field.inputValue()).toBe('adam');
  });
});
