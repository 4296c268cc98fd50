import type { Browser, Response } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { ownAccount } from '../issuer/accounts.ts';
import { parseCsv, row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';
import { addPastCalls } from './past-calls.ts';

/** More than the console reads of a report. */
const CUSTOMERS = 1_100;
const SHOWN = 1_000;
const CENT = 10_000;
const DAY_MS = 86_400_000;
const nameOf = (place: number) => `user-${String(place).padStart(4, '0')}`;
const dollars = (amount: number) => `$${(amount / 100).toFixed(2)}`;

describe.skipIf(!hasChromium)('of more customers than a screen shows', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;
  /** The groups of each report that the screens read. */
  const groups: number[] = [];

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account: await ownAccount(stack) };
    const call = (place: number, cents: number, settledAt: Date) =>
      row(of, {
        externalUser: nameOf(place),
        costMicrousd: cents * CENT,
        startedAt: settledAt,
        settledAt,
      });
    const now = new Date();
    const before = new Date(now.getTime() - 45 * DAY_MS);
    const places = Array.from({ length: CUSTOMERS }, (_, at) => at + 1);
    // Those who spent most spent least before, and the other way round.
    await addPastCalls(
      stack,
      places.flatMap((place) => [call(place, place, now), call(place, CUSTOMERS + 1 - place, before)]),
    );
    ui = await openConsole(browser, stack, { timezoneId: 'UTC' });
    ui.page.on('response', (answer) => void countGroups(answer));
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const countGroups = async (answer: Response) => {
    if (!/\/v1\/usage\?/.test(answer.url()) || answer.url().includes('format=csv')) return;
    const report = (await answer.json().catch(() => undefined)) as { data: unknown[] } | undefined;
    if (report) groups.push(report.data.length);
  };
  const rowsOf = async (name: string) =>
    (
      await ui.page
        .getByRole('table', { name })
        .locator('tbody tr')
        .allInnerTexts()
        .catch(() => [])
    ).map((each) => each.split('\t').map((cell) => cell.trim()));
  const expectRows = (name: string, isWanted: (rows: readonly string[][]) => boolean) =>
    eventually(async () => isWanted(await rowsOf(name)));

  test('Home has those who moved most, with what each spent in both times, and says how many were compared', async () => {
    const moved = (place: number) => {
      const [before, now] = [CUSTOMERS + 1 - place, place];
      const change = `${now < before ? '−' : '+'}${dollars(Math.abs(now - before))}`;
      return [nameOf(place), dollars(before), dollars(now), change].join();
    };
    const wanted = [1, 2, 3, 4].flatMap((place) => [moved(place), moved(CUSTOMERS + 1 - place)]);
    await expectRows(
      'Customers who moved most',
      (rows) =>
        rows
          .map((cells) => cells.join())
          .toSorted()
          .join(' ') === wanted.toSorted().join(' '),
    );
    await ui.page.getByText('Compared are the 1,000 customers that spent most in each time.').waitFor();
    expect((await rowsOf('This month by customer')).slice(1, 4).map(([name]) => name)).toEqual(
      [0, 1, 2].map((less) => nameOf(CUSTOMERS - less)),
    );
    await settled(ui.page);
    expect(await ui.violations()).toEqual([]);
  });

  test('Customers has those that spent most, the sums of all, and says so', async () => {
    await ui.open('Customers');
    await ui.page
      .getByText('The list has the 1,000 customers that spent most this month, of 1,100')
      .waitFor();
    const [sums, ...rows] = await rowsOf('This month by customer');
    const all = (CUSTOMERS * (CUSTOMERS + 1)) / 2;
    expect([sums?.[0], sums?.[1], sums?.[3]]).toEqual([
      'All customers',
      `$${(all / 100).toLocaleString('en-US', { minimumFractionDigits: 2 })}`,
      '1,100',
    ]);
    expect(rows.map(([name, spent]) => [name, spent])).toEqual(
      Array.from({ length: 50 }, (_, at) => [nameOf(CUSTOMERS - at), dollars(CUSTOMERS - at)]),
    );
    await ui.page.getByText(`1–50 of ${SHOWN.toLocaleString('en-US')}`, { exact: true }).waitFor();
    // An order by another column would need the customers that are not read.
    expect(await ui.page.getByRole('columnheader').getByRole('button').count()).toBe(0);
  });

  test('Find finds a customer whom the list lacks, with the figures of the month', async () => {
    const { page } = ui;
    const find = page.getByLabel('Find');
    await find.fill('R-0007');
    await expectRows('Others found by name', (rows) => {
      const [[name, spent, , calls, failed] = []] = rows;
      return rows.length === 1 && [name, spent, calls, failed].join() === 'user-0007,$0.07,1,0';
    });
    expect(await ui.violations()).toEqual([]);
    await find.fill('user-00');
    await page.getByText('There are more. Type a longer part of the name to see them.').waitFor();
    await find.fill('R-1007');
    await expectRows(
      'This month by customer',
      (rows) => rows.map(([name]) => name).join() === 'All customers,user-1007',
    );
    await page.getByText('No other customer has this text in the name.').waitFor();
    await find.fill('');
    await eventually(async () => (await page.getByText('Others found by name').count()) === 0);
  });

  test('Explore has the rows that cost most, names five in its chart, and the CSV has all', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/explore?by=external_user&zone=UTC`);
    await page.getByText('The table has the 1,000 rows that cost most of 1,100. The CSV has all.').waitFor();
    const [sums, ...rows] = await rowsOf('Usage');
    expect([sums?.[0], sums?.[1]]).toEqual(['Total', '1,100']);
    expect(rows.map(([name]) => name)).toEqual(Array.from({ length: 50 }, (_, at) => nameOf(CUSTOMERS - at)));
    const legend = page.getByRole('figure').getByRole('listitem');
    await eventually(async () => (await legend.count()) === 6);
    expect((await legend.allInnerTexts()).map((each) => each.trim())).toEqual([
      ...[0, 1, 2, 3, 4].map((less) => nameOf(CUSTOMERS - less)),
      'others',
    ]);
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const file = Buffer.concat(await (await (await saved).createReadStream()).toArray()).toString();
    expect(
      new Set(
        parseCsv(file)
          .slice(1)
          .map(([user]) => user),
      ).size,
    ).toBe(CUSTOMERS);
    expect(await ui.violations()).toEqual([]);
  });

  test('by user and by day, the rows that cost most are in the order of their days', async () => {
    await ui.page.goto(`${stack.consoleUrl}#/explore?by=day&then=external_user&zone=UTC&time=90d`);
    await ui.page.getByText('The table has the 1,000 rows that cost most of 2,200.').waitFor();
    const days = (await rowsOf('Usage')).slice(1).map(([day = '']) => day);
    expect(days).toEqual(days.toSorted());
    expect(days).toHaveLength(50);
  });

  test('no screen reads more groups of a report than it shows', () => {
    expect(groups.length).toBeGreaterThan(5);
    expect(Math.max(...groups)).toBe(SHOWN);
    expect(ui.problems).toEqual([]);
  });
});
