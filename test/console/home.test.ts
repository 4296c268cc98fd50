import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';
import { addPastCalls } from './past-calls.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const CENT = 10_000;

/** The spending of customers in cents: in the seven days before, and in the last seven days. */
const CUSTOMERS = [
  ['adam', 1_000, 100],
  ['barbara', 250, 0],
  ['alan', 400, 400],
  ['linus', 0, 300],
  ['grace', 200, 800],
] as const;

/** Hours before now, how many calls of no cost each has, and how long they took. */
const HOURS = [
  [1, 1, 30_000],
  [3, 1, 20_000],
  [4, 5, 5_000],
] as const;
/** The calls of customers, which are of one hour. */
const [CUSTOMERS_AGO, CUSTOMERS_MS] = [2, 100];

describe.skipIf(!hasChromium)('the home page, over known calls', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;
  const now = Date.now();
  const today = now - (now % DAY);
  /** In the seven days before the last ones, and not in the last week to the minute. */
  const before = today - 7 * DAY;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account: await ownAccount(stack) };
    const call = (externalUser: string | null, at: number, cents: number, totalMs: number) =>
      row(of, {
        ...{ externalUser, costMicrousd: cents * CENT, totalMs },
        ...{ startedAt: new Date(at), settledAt: new Date(at) },
      });
    await addPastCalls(stack, [
      ...CUSTOMERS.flatMap(([user, then, lately]) => [
        ...(then > 0 ? [call(user, before, then, 60_000)] : []),
        ...(lately > 0 ? [call(user, now - CUSTOMERS_AGO * HOUR, lately, CUSTOMERS_MS)] : []),
      ]),
      ...HOURS.flatMap(([ago, calls, ms]) =>
        Array.from({ length: calls }, () => call(null, now - ago * HOUR, 0, ms)),
      ),
    ]);
    ui = await openConsole(browser, stack, { timezoneId: 'UTC' });
    await signIn(ui, stack.apiKey);
    await ui.page.getByLabel('Time', { exact: true }).selectOption('Last 7 days');
    await settled(ui.page);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const fact = (name: string) =>
    ui.page
      .locator('dl > div')
      .filter({ has: ui.page.getByText(name, { exact: true }) })
      .locator('dd');
  const expectFact = (name: string, text: string) =>
    eventually(
      async () =>
        (
          await fact(name)
            .innerText()
            .catch(() => '')
        ).trim() === text,
    );

  test('compares the spending with that of the previous period of the same length', async () => {
    await expectFact('Spent', '$16.00');
    await expectFact('Before, in as long a time', '$18.50 −14 %');
  });

  test('lists the customers whose spending changed most, up or down, and omits unchanged ones', async () => {
    const movers = ui.page.getByRole('table', { name: 'Customers who moved most' });
    const shown = async () =>
      (await movers.locator('tbody tr').allInnerTexts()).map((each) =>
        each.split('\t').map((cell) => cell.trim()),
      );
    const expected = [
      ['adam', '$10.00', '$1.00', '−$9.00'],
      ['grace', '$2.00', '$8.00', '+$6.00'],
      ['linus', '$0.00', '$3.00', '+$3.00'],
      ['barbara', '$2.50', '$0.00', '−$2.50'],
    ];
    await eventually(async () => JSON.stringify(await shown()) === JSON.stringify(expected));
  });

  test('shows the p95 of the hour that contains the median call, not that of the middle hour', async () => {
    // Four calls of eleven took 0.1 s, and five took 5 s. A time is known to a ninth part.
    await eventually(async () => {
      const [, seconds] = /^([\d.]+) s$/.exec((await fact('p95 of a usual hour').innerText()).trim()) ?? [];
      return Math.abs(Number(seconds) - 5) < 5 / 9;
    });
  });

  test('adds up the forecasts of all customers', async () => {
    const sum = (place: 1 | 2) => CUSTOMERS.reduce((all, each) => all + each[place], 0) / 100;
    /** At this moment: a month may end while the test runs. */
    const expected = () => {
      const first = new Date().toISOString().slice(0, 8).concat('01');
      const [year = 0, next = 0] = first.split('-').map(Number);
      const isOfMonth = (at: number) => at >= Date.parse(`${first}T00:00Z`);
      const spent = (isOfMonth(before) ? sum(1) : 0) + (isOfMonth(now - CUSTOMERS_AGO * HOUR) ? sum(2) : 0);
      return spent + ((sum(2) / 7) * (Date.UTC(year, next, 1) - Date.now())) / DAY;
    };
    const dollarsOf = (text = '') => Number(text.replace(/[$,]/g, ''));
    const costs = ui.page.getByRole('table', { name: 'This month by customer' });
    await eventually(async () => {
      const forecast = await fact('Forecast of this month').innerText();
      const [, , ofAll] = await costs.locator('tr.sums').getByRole('cell').allInnerTexts();
      // The forecast falls by a cent in six minutes.
      return ofAll?.trim() === forecast.trim() && Math.abs(dollarsOf(forecast) - expected()) < 0.05;
    });
    expect(ui.problems).toEqual([]);
  });

  test('Explore with a filter and the page of a customer compare with the same period before', async () => {
    const week = 'time=7d&zone=UTC';
    await ui.page.goto(`${stack.consoleUrl}#/explore?external_user=adam&${week}`);
    await expectFact('Spent', '$1.00');
    await expectFact('Before, in as long a time', '$10.00 −90 %');
    await ui.page.goto(`${stack.consoleUrl}#/customers/grace?${week}`);
    await expectFact('Spent in the shown time', '$8.00');
    await expectFact('Before, in as long a time', '$2.00 +300 %');
  });
});
