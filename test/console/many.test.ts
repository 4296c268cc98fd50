import { ledger } from '@presign/schema/ledger-tables';
import { apiKeys, sessions } from '@presign/schema/tables';
import { sql } from 'drizzle-orm';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { addApiKey, ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';

const USERS = 10_000;
const SESSION = '6f9f2ac5-77f5-4d2c-9d1f-9a3a5d1c7e01';
const CALL = 'c4a760a8-dbcf-4e3a-9f5f-0e5d3c2b1a99';

describe.skipIf(!hasChromium)('the console of an account with 10,000 users and more than 100 keys', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    const account = await ownAccount(stack);
    await stack.db.execute(sql`insert into ledger (hold_id, account_id, session_id, grant_id, provider, external_user, uses, outcome,
        started_at, settled_at)
      select gen_random_uuid(), ${account}::uuid, gen_random_uuid(), gen_random_uuid(), 'openai',
        'user-' || lpad(n::text, 5, '0') || '-of-many', 1, 'settled', now(), now() from generate_series(1, ${USERS}::int) as n`);
    await addApiKey(stack, account, { name: 'The oldest key', createdAt: new Date('2026-01-01') });
    for (let key = 0; key < 100; key++) await addApiKey(stack, account, { name: `key ${key}` });
    const [oldest] = await stack.db.select().from(apiKeys).where(sql`${apiKeys.name} = 'The oldest key'`);
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account };
    await stack.db
      .insert(ledger)
      .values(row(of, { requestId: CALL, apiKeyId: oldest?.id ?? '', settledAt: new Date() }));
    await stack.db.insert(sessions).values({ id: SESSION, accountId: account, name: 'Report of the night' });
    ui = await openConsole(browser, stack, { timezoneId: 'UTC' });
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const found = () => ui.page.getByRole('listbox', { name: 'Found' }).getByRole('option').allInnerTexts();
  /** Opens the search, types a text, and waits until it has found this and no more. */
  const search = async (text: string, expected: readonly string[]) => {
    await ui.page.keyboard.press('Control+K');
    await eventually(async () => (await ui.page.evaluate('document.activeElement.role')) === 'combobox');
    await ui.page.keyboard.type(text);
    await eventually(async () => {
      const texts = (await found()).map((each) => each.replace(/\s+/g, ' ').trim());
      return JSON.stringify(texts) === JSON.stringify(expected);
    });
  };

  /** The first Escape empties the field. */
  const leave = () =>
    eventually(async () => {
      await ui.page.keyboard.press('Escape');
      return ui.page.getByRole('dialog', { name: 'Search' }).isHidden();
    });

  test('user 9,999 is found by a part of the name, and opened', async () => {
    await search('09999', ['user-09999-of-many customer', '09999 customer, as typed']);
    await ui.page.keyboard.press('Enter');
    await ui.page.getByRole('heading', { level: 1, name: 'user-09999-of-many' }).waitFor();
  });

  test('a session is found by a part of its name', async () => {
    await search('the night', ['Report of the night session', 'the night customer, as typed']);
    await leave();
  });

  test('a key that is not among the newest hundred is found by name, and shown by name in requests and on the page of a call', async () => {
    await search('oldest', ['The oldest key API key', 'oldest customer, as typed']);
    await leave();
    await ui.page.goto(`${stack.consoleUrl}#/requests`);
    await settled(ui.page);
    await ui.page.getByText('Code, tool, key, session or URL').click();
    const keys = ui.page.getByLabel('API key', { exact: true });
    await eventually(async () => (await keys.locator('option').allInnerTexts()).includes('The oldest key'));
    await keys.selectOption('The oldest key');
    await eventually(async () => (await ui.page.getByRole('table').getByRole('row').count()) === 2);
    await ui.page.goto(`${stack.consoleUrl}#/requests/${CALL}`);
    await ui.page.getByRole('link', { name: 'The oldest key' }).waitFor();
  });

  test('a field suggests the users whose names contain the typed text', async () => {
    await ui.page.goto(`${stack.consoleUrl}#/requests`);
    await settled(ui.page);
    const field = ui.page.getByLabel('User', { exact: true });
    await field.fill('09998-of');
    const suggested = ui.page.locator('datalist option[value="user-09998-of-many"]');
    await eventually(async () => (await suggested.count()) > 0);
    expect(await field.inputValue()).toBe('09998-of');
  });
});
