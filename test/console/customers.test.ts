import { createPresign } from '@presign/client';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';
import { addPastCalls } from './past-calls.ts';

const CUSTOMERS = 1_000;
const CENT = 10_000;
const nameOf = (place: number) => `user-${String(place).padStart(4, '0')}`;

describe.skipIf(!hasChromium)('a table of a thousand customers', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account: await ownAccount(stack) };
    const settledAt = new Date();
    // The last one by name costs most.
    const calls = Array.from({ length: CUSTOMERS }, (_, at) =>
      row(of, {
        externalUser: nameOf(at + 1),
        costMicrousd: (at + 1) * CENT,
        startedAt: settledAt,
        settledAt,
      }),
    );
    await addPastCalls(stack, calls);
    ui = await openConsole(browser, stack, { timezoneId: 'UTC' });
    await signIn(ui, stack.apiKey);
    await ui.open('Customers');
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const table = () => ui.page.getByRole('table', { name: 'This month by customer' });
  const names = () => table().getByRole('rowheader').allInnerTexts();
  /** The names from one place to another, the dearest first. */
  const dearest = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, at) => nameOf(CUSTOMERS - from - at + 1));
  const press = (name: string) => ui.page.getByRole('button', { name, exact: true }).click();
  const isOff = (name: string) => ui.page.getByRole('button', { name, exact: true }).isDisabled();
  const expectPage = async (place: string, rows: readonly string[]) => {
    await ui.page.getByRole('status').getByText(place, { exact: true }).waitFor();
    expect(await names()).toEqual(rows);
  };
  /** The sums of all customers are the first row, before those that are shown. */
  const expectSums = async () => {
    const cells = await table().locator('tbody tr').first().getByRole('cell').allInnerTexts();
    const [name, spent, , calls, failed] = cells.map((each) => each.trim());
    expect([name, spent, calls, failed]).toEqual(['All customers', '$5,005.00', '1,000', '0']);
  };

  test('has fifty on a page, the highest cost first, and totals at the top of each page', async () => {
    await expectPage('1–50 of 1,000', dearest(1, 50));
    await expectSums();
    expect(await isOff('Previous')).toBe(true);
    await press('Next');
    await expectPage('51–100 of 1,000', dearest(51, 100));
    await expectSums();
    await press('Previous');
    await expectPage('1–50 of 1,000', dearest(1, 50));
  });

  test('ends with its last page', async () => {
    for (let page = 2; page <= CUSTOMERS / 50; page++) await press('Next');
    await expectPage('951–1,000 of 1,000', dearest(951, 1_000));
    await expectSums();
    expect([await isOff('Next'), await isOff('Previous')]).toEqual([true, false]);
  });

  test('is sorted over all pages, not within one', async () => {
    await table()
      .getByRole('columnheader', { name: /^Customer/ })
      .getByRole('button')
      .click();
    await eventually(async () => (await names()).at(-1) === nameOf(CUSTOMERS));
    for (let page = 2; page <= CUSTOMERS / 50; page++) await press('Previous');
    await expectPage('1–50 of 1,000', dearest(951, 1_000).toReversed());
  });

  test('shows a single page while you search for a customer, whichever page was open', async () => {
    await press('Next');
    await ui.page.getByLabel('Find').fill('R-0777');
    await eventually(async () => (await names()).join() === nameOf(777));
    expect(await ui.page.getByRole('button', { name: 'Next' }).count()).toBe(0);
    await expectSums();
    await ui.page.getByLabel('Find').fill('zoe');
    await ui.page.getByText('No listed customer has this text in the name.').waitFor();
    await ui.page.getByLabel('Find').fill('');
    await eventually(async () => (await names()).length === 50);
  });

  test('adds up to the report of the API', async () => {
    const api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    const month = new Date().toISOString().slice(0, 8).concat('01');
    const { total } = await api.getUsage({ from: month });
    expect([total.cost, total.calls]).toEqual([5_005_000_000, CUSTOMERS]);
    await settled(ui.page);
    await expectSums();
    expect(await ui.violations()).toEqual([]);
    expect(ui.problems).toEqual([]);
  });
});
