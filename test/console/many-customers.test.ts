import { sql } from 'drizzle-orm';
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
/** Before all ranges of the other tests. */
const LONG_AGO = new Date(Date.now() - 120 * DAY_MS);
const OLDER = 'older';
const nameOf = (place: number) => `user-${String(place).padStart(4, '0')}`;
/** By how many cents the eight who moved most changed, by their places. All others moved by at most a dollar. */
const MOVED = new Map<number, number>([
  // Now, it is not among those who spent most.
  [40, -900],
  ...[117, -116, 115, -114, 113, -112, 111].map((cents, at) => [CUSTOMERS - at, cents] as const),
]);
/** Each of the first two hundred moved by a dollar. One of the two times lacks them among those who spent most. */
const changeOf = (place: number) => MOVED.get(place) ?? (place > 200 ? 0 : place > 100 ? 100 : -100);
const centsBefore = (place: number) => place - changeOf(place);
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
        model: `model-${place}`,
        costMicrousd: cents * CENT,
        startedAt: settledAt,
        settledAt,
      });
    const now = new Date();
    const before = new Date(now.getTime() - 45 * DAY_MS);
    const places = Array.from({ length: CUSTOMERS }, (_, at) => at + 1);
    await addPastCalls(stack, [
      ...places.flatMap((place) => [call(place, place, now), call(place, centsBefore(place), before)]),
      row(of, { externalUser: '', startedAt: LONG_AGO, settledAt: LONG_AGO }),
    ]);
    await addUrls(of.account);
    ui = await openConsole(browser, stack, { timezoneId: 'UTC' });
    ui.page.on('response', (answer) => void countGroups(answer));
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  /** URLs of one customer, more than are sorted for a page, and newer ones of another, more than a page looks at. */
  const addUrls = (account: string) =>
    stack.db.execute(sql`with made as materialized (
        select n, gen_random_uuid() as session, gen_random_uuid() as budget, now() - n * interval '1 ms' as at
        from generate_series(1, 12100) n),
      s as (insert into sessions (id, account_id, created_at) select session, ${account}::uuid, at from made),
      b as (insert into budgets (id, partition, max_uses) select budget, 0, 10 from made)
      insert into grants (id, account_id, session_id, budget_id, api_key_id, kind, provider, external_user, issued_at, expires_at)
      select gen_random_uuid(), ${account}::uuid, session, budget, (select id from api_keys where account_id = ${account}::uuid limit 1),
        'llm', 'openai', case when n <= 2050 then 'newer' else ${OLDER}::text end, at, now() + interval '1 day' from made`);

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
    const wanted = [...MOVED].map(([place, cents]) => {
      const change = `${cents < 0 ? '−' : '+'}${dollars(Math.abs(cents))}`;
      return [nameOf(place), dollars(centsBefore(place)), dollars(place), change].join();
    });
    await expectRows(
      'Customers who moved most',
      (rows) => rows.map((cells) => cells.join()).join(' ') === wanted.join(' '),
    );
    await ui.page
      .getByText(
        'Compared are the 1,000 customers that spent most in each time. One that is missing from a time is ranked by the least change that is possible.',
      )
      .waitFor();
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
    // The search ends at twenty names, all of which the list has.
    await find.fill('user-1');
    await page.getByText('There may be more. Type a longer part of the name, from its beginning,').waitFor();
    await page.getByText('None among those read so far.').waitFor();
    expect(await page.getByText('No other customer has this text in the name.').count()).toBe(0);
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

  test('Requests says which calls its facets count, and a chosen model that they lack can be left', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/requests?model=model-7&zone=UTC`);
    const note = 'Counted are the calls of the 1,000 pairs of provider and model that cost most, of 1,100.';
    await page.getByText(note).waitFor();
    const models = page.getByRole('navigation', { name: 'Models' });
    await models.getByRole('link', { name: 'model-7', exact: true }).click();
    await eventually(async () => {
      const isChosen = await models
        .getByRole('link')
        .evaluateAll((links) => links.map((link) => link.hasAttribute('aria-current')));
      return isChosen.length === 8 && !isChosen.includes(true);
    });
    expect(await ui.violations()).toEqual([]);
  });

  test('a first page of URLs without one of the customer does not say that there is none, and a next page has them', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/customers/${OLDER}`);
    await page.getByText('None among those read so far.').waitFor();
    expect(await page.getByText('No URL yet.').count()).toBe(0);
    await page.getByRole('button', { name: 'Show more' }).click();
    await expectRows('URLs of this customer', (rows) => rows.length > 0);
    expect(await page.getByText('None among those read so far.').count()).toBe(0);
  });

  test('a customer with an empty name is shown as such, without a link to the sums of all', async () => {
    const [from, to] = [-1, 1].map((days) => new Date(LONG_AGO.getTime() + days * DAY_MS).toISOString());
    const range = new URLSearchParams({ from: from ?? '', to: to ?? '', zone: 'UTC' });
    await ui.page.goto(`${stack.consoleUrl}#/explore?by=external_user&${range}`);
    await expectRows('Usage', (rows) => rows.map(([name]) => name).join() === 'Total,(empty)');
    expect(await ui.page.getByRole('table', { name: 'Usage' }).getByRole('link').count()).toBe(0);
    await ui.page.goto(`${stack.consoleUrl}#/requests?${range}`);
    await expectRows('Requests', (rows) => rows.length === 1 && rows[0]?.includes('(empty)') === true);
    expect(await ui.violations()).toEqual([]);
  });

  test('no screen reads more groups of a report than it shows', () => {
    expect(groups.length).toBeGreaterThan(5);
    expect(Math.max(...groups)).toBe(SHOWN);
    expect(ui.problems).toEqual([]);
  });
});
