import { createPresign, type KeyPolicy, type Presign } from '@presign/client';
import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, ownAccount } from '../issuer/accounts.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true };

describe.skipIf(!hasChromium)('the pages for developers', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let refusing: Upstream;
  let ui: ConsolePage;
  let api: Presign;
  let virtualKey: string;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    refusing = await startUpstream((_seen, response) => void response.writeHead(500).end());
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    const made = await api.createVirtualKey({ name: 'Production', provider: 'sandbox', key: 'sk-sandbox' });
    virtualKey = made.id;
    ui = await openConsole(browser, stack, { timezoneId: 'UTC' });
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
    await refusing?.close();
  });

  const dialog = (of = ui) => of.page.getByRole('dialog');
  const press = (name: string, of = ui) => of.page.getByRole('button', { name }).first().click();
  const send = (name: string, of = ui) => dialog(of).getByRole('button', { name, exact: true }).click();
  const field = (name: string, of = ui) => dialog(of).getByLabel(name, { exact: true });
  const go = async (place: string, heading: string, of = ui) => {
    await of.page.goto(`${stack.consoleUrl}#/${place}`);
    await of.page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await settled(of.page);
  };
  const unfold = (name: string, of = ui) => dialog(of).locator('summary', { hasText: name }).click();
  const keyNamed = async (name: string) => {
    const { data } = await api.listApiKeys({ limit: 100 });
    return data.filter((each) => each.name === name);
  };
  const isFocused = (place: Locator) =>
    eventually(() => place.evaluate((element) => element === element.ownerDocument.activeElement));

  test('a policy is entered field by field, summed up in one sentence, and equal to its JSON', async () => {
    await ui.open('Keys');
    await press('Create an API key');
    await field('Name').fill('Web');
    await unfold('Providers, models and paths');
    await field('Providers').pressSequentially('sandbox');
    await field('Providers').press('Enter');
    await field('Models').fill('sandbox-1, sandbox-mini');
    await field('Models').press('Tab');
    await field('Production').check();
    await unfold('The most of each URL');
    await field('Dollars').fill('0.25');
    await field('Lasts').fill('15 minutes');
    await field('Calls a day').fill('100');
    await field('its uses').check();
    await unfold('Callers and bodies');
    await field('Origins of pages').fill('https://app.example.com');
    await field('Sockets').selectOption('no URL opens as one');
    await field('Settings of each call').fill('{"max_tokens": 500}');
    await dialog()
      .getByText(
        'It issues only URLs for sandbox, with the models sandbox-1 and sandbox-mini alone, with the virtual key Production, ' +
          'of at most $0.25 and 100 calls a day each, that last at most 15 minutes, that limit uses, ' +
          'for calls of pages of https://app.example.com, that never open as sockets, with max_tokens 500.',
      )
      .waitFor();
    const policy: KeyPolicy = {
      ...{ providers: ['sandbox'], models: ['sandbox-1', 'sandbox-mini'], virtual_keys: [virtualKey] },
      ...{ required: ['max_uses'], bind: { origins: ['https://app.example.com'] }, sockets: false },
      ...{
        config: { max_tokens: 500 },
        highest: { cost_limit: 250_000, expires_in: 900, calls_per_day: 100 },
      },
    };
    await unfold('As JSON');
    expect(JSON.parse(await field('The policy as JSON').inputValue())).toEqual(policy);
    await ui.page.evaluate("document.querySelector('dialog[open]').scrollTop = 0");
    await ui.picture('policy', 740);
    expect(await ui.violations()).toEqual([]);
    const { config: _, ...next } = policy;
    await field('The policy as JSON').fill(JSON.stringify({ ...next, external_user: 'adam' }));
    expect(await field('User').inputValue()).toBe('adam');
    expect(await field('Settings of each call').inputValue()).toBe('');
    await send('Create');
    await field('The new API key').waitFor();
    await send('Close');
    expect((await keyNamed('Web'))[0]?.policy).toEqual({ ...next, external_user: 'adam' });
  });

  test('an invalid text is not sent, and a refusal of the issuer is shown at its field', async () => {
    await ui.open('Keys');
    await press('Create an API key');
    await field('Name').fill('Wrong');
    await unfold('The most of each URL');
    await field('Dollars').fill('much');
    await unfold('The most of each URL');
    await send('Create');
    // The browser unfolds the group and explains the field.
    await isFocused(field('Dollars'));
    await field('Dollars').fill('1');
    await unfold('Providers, models and paths');
    await field('Providers').fill('nowhere');
    await field('Hosts of MCP servers').fill('Mcp.Example.com');
    await unfold('Providers, models and paths');
    await send('Create');
    await isFocused(field('Hosts of MCP servers'));
    expect(await dialog().getByRole('alert').innerText()).toContain('policy.mcp_hosts[0]');
    expect(await ui.violations()).toEqual([]);
    await field('Hosts of MCP servers').fill('');
    await send('Create');
    await isFocused(field('Providers'));
    expect(await dialog().getByRole('alert').innerText()).toContain('policy.providers[0]');
    await send('Cancel');
    expect(await keyNamed('Wrong')).toEqual([]);
  });

  test('a key is rotated: the new key has its scopes and policy, and the old key ends', async () => {
    const [old] = await keyNamed('Web');
    await go(`keys/${old?.id}`, 'Web');
    expect(await ui.page.locator('main').innerText()).toContain('presign: issue, change and revoke URLs');
    await ui.picture('api-key');
    await press('Rotate');
    await field('The old key ends').selectOption('in a day');
    await send('Rotate');
    const made = createPresign({ url: stack.issuerUrl, apiKey: await field('The new API key').inputValue() });
    await send('Close');
    const { api_key: rotated } = await made.getLimits();
    expect(rotated).toMatchObject({
      name: 'Web',
      scopes: old?.scopes,
      policy: old?.policy,
      expires_at: null,
    });
    const after = await api.getApiKey({ id: old?.id ?? '' });
    expect(Math.abs((after.expires_at ?? 0) - Date.now() / 1000 - 86_400)).toBeLessThan(600);
    await press('Change');
    await field('Name').fill('Web, old');
    await send('Save');
    await ui.page.getByRole('heading', { level: 1, name: 'Web, old' }).waitFor();
    // Its end has seconds, which the form does not show.
    expect(await api.getApiKey({ id: old?.id ?? '' })).toMatchObject({ expires_at: after.expires_at });
    expect(await ui.violations()).toEqual([]);
  });

  test('a virtual key has a limit, and a resetting budget can be created on its page', async () => {
    await ui.open('Keys');
    await press('Change Production');
    await field('Limit in dollars').fill('50');
    await send('Save');
    await ui.page
      .getByRole('row', { name: /Production/ })
      .getByText('$50.00')
      .waitFor();
    await ui.page.getByRole('link', { name: 'Production' }).click();
    await ui.page.getByRole('heading', { level: 1, name: 'Production' }).waitFor();
    await press('Create a budget');
    await field('Resets every').selectOption('day');
    await field('Limit in dollars').fill('2.50');
    await send('Create');
    await ui.page.getByRole('table', { name: 'Shared budgets' }).getByText('$2.50').waitFor();
    await ui.picture('virtual-key');
    const { data } = await api.listBudgets({});
    expect(data).toMatchObject([
      { name: 'Production', window: 'day', cost_limit: 2_500_000, scope: { virtual_key: virtualKey } },
    ]);
    expect(await ui.violations()).toEqual([]);
  });

  /** All that the scripts of a page hold. */
  const memoryOf = async ({ page }: ConsolePage): Promise<string> => {
    const debug = await page.context().newCDPSession(page);
    const parts: string[] = [];
    debug.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => parts.push(chunk));
    await debug.send('HeapProfiler.takeHeapSnapshot');
    await debug.detach();
    return parts.join('');
  };

  test("a typed secret is removed from the page's memory when its dialog closes", async () => {
    await go('keys', 'Keys');
    await press('Rotate Production');
    await field('New provider key').focus();
    await ui.page.keyboard.type('sk-sandbox-typed');
    await send('Rotate');
    await dialog().waitFor({ state: 'hidden' });
    await eventually(async () => !(await memoryOf(ui)).includes('sk-sandbox-typed'));
  });

  test('a failing webhook shows the cause, and its deliveries can be filtered', async () => {
    const { id } = await api.createWebhook({ url: `${refusing.url}/events` });
    await api.testWebhook({ id });
    await go(`webhooks/${id}`, `Webhook ${new URL(refusing.url).host}`);
    // The first retry follows after seconds.
    await ui.page
      .getByText(/^Tried (once|\d+ times): the endpoint refused it \(status 500\)\.$/)
      .first()
      .waitFor();
    await ui.page.getByLabel('Status').selectOption('delivered');
    await ui.page.getByText('No delivery fits.').waitFor();
    expect(await ui.violations()).toEqual([]);
  });

  test('the audit log shows the differences with names, and links to the changed thing', async () => {
    await ui.open('Audit');
    await ui.page.getByLabel('Change', { exact: true }).selectOption('API key changed');
    const renamed = ui.page.getByRole('row').filter({ hasText: 'name: Web → Web, old' });
    await renamed.waitFor();
    expect(await renamed.innerText()).not.toContain('scopes');
    await ui.page.getByText(/expires at: none → \w+/).waitFor();
    await ui.page.getByLabel('Change', { exact: true }).selectOption('API key created');
    await ui.page.getByText('policy › virtual keys: Production').first().waitFor();
    await ui.page.getByText('policy › highest › cost limit: $0.25').first().waitFor();
    await ui.page.getByLabel('Change', { exact: true }).selectOption('all');
    await ui.page.getByText('budget › cost limit: none → $50.00').waitFor();
    await settled(ui.page);
    await ui.picture('audit', 540);
    expect(await ui.violations()).toEqual([]);
    await ui.page.getByLabel('Of', { exact: true }).selectOption('virtual key');
    await ui.page.getByRole('link', { name: 'Production', exact: true }).first().click();
    await ui.page.getByRole('heading', { level: 1, name: 'Production' }).waitFor();
    expect(ui.problems).toEqual([]);
  });

  test('each page names the scope that a key lacks', async () => {
    const account = await ownAccount(stack);
    const reader = await openConsole(browser, stack);
    await signIn(reader, await addApiKey(stack, account, { scopes: ['read'], name: 'reader' }));
    const lacks = (scope: string) =>
      reader.page.getByText(`This API key lacks the scope ${scope},`).waitFor();
    await go('keys', 'Keys', reader);
    await lacks('admin');
    await reader.page.getByRole('link', { name: 'Production' }).waitFor();
    await go('keys/0b0e7a6c-6a3f-4e0e-9a53-0d6f0a1b2c3d', 'API key', reader);
    await lacks('admin');
    await go('audit', 'Audit', reader);
    await lacks('admin');
    await go('webhooks', 'Webhooks', reader);
    await lacks('admin');
    await go('accounts', 'Accounts', reader);
    await lacks('operator');
    expect(await reader.violations()).toEqual([]);
    await reader.page.context().close();
  });

  test('an operator without other scopes sees the accounts, and none of their data', async () => {
    const account = await ownAccount(stack);
    const operator = await openConsole(browser, stack);
    const { page } = operator;
    await page
      .getByLabel('API key')
      .fill(await addApiKey(stack, account, { scopes: ['operator'], name: 'operator' }));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Accounts' }).waitFor();
    await settled(page);
    expect(await page.getByRole('navigation', { name: 'Screens' }).getByRole('link').allInnerTexts()).toEqual(
      ['Accounts'],
    );
    await go('customers', 'Customers', operator);
    await page.getByText('This API key lacks the scope read,').waitFor();
    expect(operator.problems).toEqual([]);
    await page.context().close();
  });

  test('on a phone, by touch, another account enters a policy and sees nothing of this one', async () => {
    const { id } = await addAccount(stack);
    const own = await openConsole(browser, stack, PHONE);
    const key = await addApiKey(stack, id, { scopes: ['admin'], name: 'theirs' });
    await signIn(own, key);
    await own.open('Keys');
    const tap = (name: string) => own.page.getByRole('button', { name, exact: true }).first().tap();
    await tap('Create an API key');
    await field('Name', own).fill('Phone');
    await dialog(own).locator('summary', { hasText: 'Providers, models and paths' }).tap();
    await dialog(own).getByText('This account has none.').waitFor();
    await field('Models', own).fill('sandbox-1');
    await field('Models', own).press('Enter');
    await dialog(own).getByRole('button', { name: 'Remove sandbox-1' }).tap();
    await field('Models', own).fill('sandbox-mini');
    await dialog(own).getByRole('button', { name: 'Create', exact: true }).tap();
    await field('The new API key', own).waitFor();
    await dialog(own).getByRole('button', { name: 'Close' }).tap();
    await own.page.getByText('It issues only URLs with the model sandbox-mini alone.').waitFor();
    const foreign = (await keyNamed('Web, old'))[0]?.id;
    for (const place of ['keys', 'audit', `keys/${foreign}`, `keys/${virtualKey}`]) {
      await own.page.goto(`${stack.consoleUrl}#/${place}`);
      await own.page.getByRole('heading', { level: 1 }).waitFor();
      await settled(own.page);
      const shown = await own.page.locator('main').innerText();
      for (const name of ['Web', 'Production']) expect(shown, place).not.toContain(name);
    }
    expect(own.problems).toEqual([]);
    await own.page.context().close();
  });
});
