import { randomUUID } from 'node:crypto';
import { ledger } from '@presign/schema/ledger-tables';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, launchChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { addApiKey, ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, makeCalls, startConsole } from './console-stack.ts';

/** A script for every place that shows a name as HTML. */
const SCRIPT = '<img src=x onerror="document.title=1">';
const LONG = 'n'.repeat(255);
const MOST = Number.MAX_SAFE_INTEGER;

describe.skipIf(!hasChromium)('the figures of the console', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;
  let session: string;
  let account: string;
  const mcpCall = randomUUID();

  const admin = async (method: string, path: string, body?: object): Promise<Listed> => {
    const answer = await fetch(`${stack.issuerUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    expect(answer.ok, await answer.clone().text()).toBe(true);
    return JSON.parse((await answer.text()) || '{}') as Listed;
  };
  type Listed = { data: { id: string; name: string; cost_limit: number; revoked_at: number | null }[] };

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), launchChromium()]);
    account = await ownAccount(stack);
    const budget = { window: 'month', cost_limit: 1_000_000 };
    await admin('POST', '/v1/budgets', { ...budget, name: 'Team', scope: { external_user: 'ada' } });
    await admin('POST', '/v1/budgets', { ...budget, name: SCRIPT, scope: { external_user: SCRIPT } });
    await admin('POST', '/v1/budgets', { ...budget, name: LONG, scope: { external_user: LONG } });
    const most = { name: 'Most', scope: { metadata: { plan: SCRIPT } }, cost_limit: MOST };
    await admin('POST', '/v1/budgets', { ...budget, ...most });
    const { apiKey } = stack;
    session = await makeCalls(stack, { apiKey, user: 'ada' }, 'Why is the sky blue? '.repeat(60), 2);
    await makeCalls(stack, { apiKey, user: 'ada', model: 'sandbox-mini' }, 'How do planes fly?', 1);
    await makeCalls(stack, { apiKey, user: SCRIPT }, 'Hello', 1);
    await addApiKey(stack, account, { name: 'Old', expiresAt: new Date(Date.now() - 1_000) });
    await stack.issuer.ledger.drainAll();
    const of = { issuerUrl: stack.issuerUrl, apiKey, account };
    const names = [null, 'none', 'others', 'u1', 'u2', 'u3', 'u4', 'u5'];
    const rows = names.map((externalUser, at) =>
      row(of, { externalUser, costMicrousd: 1_000 * (20 - at), model: SCRIPT, settledAt: new Date() }),
    );
    const mcp = { requestId: mcpCall, provider: 'mcp', model: null, server: SCRIPT, tool: 'add' };
    await stack.db.insert(ledger).values([...rows, row(of, { ...mcp, settledAt: new Date() })]);
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  const texts = () => ui.page.locator('main').innerText();
  const cells = async (name: string) =>
    (await ui.page.getByRole('row').filter({ hasText: name }).first().getByRole('cell').allInnerTexts()).map(
      (each) => each.trim(),
    );
  const press = (name: string) => ui.page.getByRole('button', { name }).first().click();
  const dialog = () => ui.page.getByRole('dialog');
  /** Waits for the answer of a changed question. */
  const loaded = async (heading: string) => {
    await ui.page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await settled(ui.page);
  };

  test('the fields of a filter show the filter in force, also after a link and the Back button', async () => {
    const { page } = ui;
    await ui.open('Sessions');
    await page.getByLabel('User').fill('ada');
    await page.getByLabel('Status').selectOption('active');
    await press('Apply');
    await eventually(async () => (await page.getByRole('row').count()) === 3);
    await ui.open('Sessions');
    await eventually(async () => (await page.getByRole('row').count()) === 4);
    expect(await page.getByLabel('User').inputValue()).toBe('');
    expect(await page.getByLabel('Status').inputValue()).toBe('');
    await page.goBack();
    await eventually(async () => (await page.getByLabel('User').inputValue()) === 'ada');
    expect(await page.getByLabel('Status').inputValue()).toBe('active');
    await eventually(async () => (await page.getByRole('row').count()) === 3);
  });

  test('the link of a row of usage leads to exactly the calls of this row', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/usage?by=external_user&model=sandbox-mini`);
    await page.getByRole('link', { name: 'ada', exact: true }).waitFor();
    const cost = (await cells('ada')).at(-1) ?? '';
    await page.getByRole('link', { name: 'ada', exact: true }).click();
    await page.getByRole('columnheader', { name: 'day (UTC)' }).waitFor();
    expect((await cells('Total')).at(-1)).toBe(cost);
    expect(await page.getByLabel('User').inputValue()).toBe('ada');
    expect(await page.getByLabel('Model').inputValue()).toBe('sandbox-mini');
  });

  test('a filter by API key stays visible and in force when another filter is added', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/usage?by=api_key`);
    const key = page.getByRole('rowheader').getByRole('link').first();
    const id = await key.innerText();
    await key.click();
    await eventually(async () => (await page.getByLabel('API key (id)').inputValue()) === id);
    await page.getByLabel('User').fill('ada');
    await press('Apply');
    await page.waitForURL(/external_user=ada/);
    expect(page.url()).toContain(id);
  });

  test('users named as the groups of a chart are groups of their own', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/usage?by=external_user`);
    await page.getByRole('link', { name: 'others', exact: true }).waitFor();
    const legend = page.getByRole('figure').getByRole('listitem');
    await eventually(async () => (await legend.count()) === 6);
    const names = (await legend.allInnerTexts()).map((each) => each.trim());
    expect(names).toEqual(['none', 'none', 'others', 'u1', 'u2', 'others']);
    expect(await page.getByRole('rowheader', { name: 'none', exact: true }).count()).toBe(2);
  });

  test('the largest amount is saved as it was read', async () => {
    await ui.open('Budgets');
    expect(await cells('Most')).toContain('$9,007,199,254.740991');
    await press('Change Most');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().waitFor({ state: 'hidden' });
    const { data } = await admin('GET', '/v1/budgets');
    expect(data.find(({ name }) => name === 'Most')?.cost_limit).toBe(MOST);
    await press('Change Most');
    await dialog().getByLabel('Limit in dollars').fill('9007199254.740992');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().getByRole('alert').getByText('expected dollars up to').waitFor();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
  });

  test('a long name leaves the other columns where they can be reached', async () => {
    const { page } = ui;
    await ui.open('Budgets');
    await page.getByRole('rowheader', { name: LONG }).waitFor();
    for (const name of await page.getByRole('rowheader').all())
      expect((await name.boundingBox())?.width).toBeLessThan(400);
    expect(await ui.violations()).toEqual([]);
  });

  test('a form that is sent twice at once makes one key', async () => {
    await ui.open('Keys');
    await press('Create an API key');
    await dialog().getByLabel('Name').fill('Twice');
    const form = 'document.querySelector("dialog[open] form")';
    await ui.page.evaluate(`${form}.requestSubmit(); ${form}.requestSubmit()`);
    await dialog().getByLabel('The new API key').waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await settled(ui.page);
    const { data } = await admin('GET', '/v1/api-keys');
    expect(data.filter(({ name }) => name === 'Twice')).toHaveLength(1);
  });

  test('an API key that has ended is not shown as active', async () => {
    await ui.open('Keys');
    expect((await cells('Old'))[1]).toBe('expired');
  });

  test('an MCP call has a price and no lines of tokens', async () => {
    await ui.page.goto(`${stack.consoleUrl}#/calls/${mcpCall}`);
    await ui.page.getByRole('row', { name: 'Charged' }).waitFor();
    expect(await texts()).toContain('A call of an MCP server has one price');
    expect(await ui.page.getByRole('row', { name: 'Input tokens' }).count()).toBe(0);
  });

  test('the audit log leads from a change to all changes of the same thing', async () => {
    await ui.open('Audit');
    await ui.page.getByRole('row').filter({ hasText: 'budget.changed' }).first().waitFor();
    const { data } = await admin('GET', '/v1/budgets');
    const id = data.find(({ name }) => name === 'Most')?.id ?? '';
    await ui.page
      .getByRole('link', { name: `budget ${id.slice(0, 8)}` })
      .first()
      .click();
    await loaded('Audit');
    expect(await ui.page.getByLabel('Id of what changed').inputValue()).toBe(id);
    await eventually(async () => (await ui.page.getByRole('row').count()) === 3);
  });

  test('names are text and never markup', async () => {
    for (const name of ['Overview', 'Budgets', 'Sessions', 'Calls', 'Usage', 'Keys', 'Audit']) {
      await ui.open(name);
      expect(await ui.page.locator('main img').count(), name).toBe(0);
    }
    await ui.open('Calls');
    await ui.page.getByText(SCRIPT).first().waitFor();
    expect(ui.problems).toEqual([]);
  });

  test('the price of a call fits on a phone', async () => {
    const { page } = ui;
    const calls = (await admin('GET', '/v1/calls?external_user=ada')) as unknown as {
      data: { request_id: string }[];
    };
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto(`${stack.consoleUrl}#/calls/${calls.data[0]?.request_id}`);
    await page.getByText('a million').first().waitFor();
    const hidden =
      'document.querySelector("section.scroll").scrollWidth - document.querySelector("section.scroll").clientWidth';
    expect(await page.evaluate(hidden)).toBe(0);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test('a key that is revoked while its page is open leads to the sign-in, also from the form that issues', async () => {
    const own = await openConsole(browser, stack);
    const apiKey = await addApiKey(stack, account, { name: 'Short' });
    await own.page.getByLabel('API key').fill(apiKey);
    await own.page.getByRole('button', { name: 'Sign in' }).click();
    await own.page.getByLabel('provider (required)').fill('sandbox');
    await own.page.getByLabel('path (required)').fill('/v1/chat/completions');
    const { data } = await admin('GET', '/v1/api-keys');
    await admin('DELETE', `/v1/api-keys/${data.find(({ name }) => name === 'Short')?.id}`);
    await own.page.getByRole('button', { name: 'Issue', exact: true }).click();
    await own.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await own.page.context().close();
  });

  test('without Redis, the figures of the ledger stand there as such, and not as zero', async () => {
    const { page } = ui;
    await ui.open('Budgets');
    const [, , , , spent = ''] = await cells('Team');
    expect(spent).not.toBe('$0.00');
    stack.redis.disconnect();
    await page.getByText('Redis does not answer').waitFor();
    const without = await cells('Team');
    expect(without[4]).toBe(spent);
    expect(without[5]).toBe('–');
    await page.goto(`${stack.consoleUrl}#/sessions/${session}`);
    await page.getByText('Redis does not answer').waitFor();
    expect(await texts()).toContain('2 of 50');
    await ui.open('Overview');
    await page.getByText('Redis does not answer. These figures').waitFor();
    expect(await texts()).toContain('Holding money\n–');
  });

  test('without the issuer, a screen says so and shows no zero', async () => {
    await stack.issuer.close();
    await ui.page.goto(`${stack.consoleUrl}#/usage?by=provider`);
    await ui.page.getByRole('alert').first().waitFor();
    expect(await texts()).not.toContain('$0.00');
    expect(await texts()).not.toContain('No calls');
  });
});
