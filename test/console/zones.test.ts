import { randomUUID } from 'node:crypto';
import { ledger } from '@presign/schema/ledger-tables';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';

/** A day of UTC, within the last month. */
const DAY = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10);
const at = (time: string) => new Date(`${DAY}T${time}Z`);

describe.skipIf(!hasChromium)('in a browser of another time zone', () => {
  let stack: ConsoleStack;
  let browser: Browser;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account: await ownAccount(stack) };
    const times = ['00:00:00', '13:48:55.700', '13:48:56', '23:59:59.999'].map(at);
    const before = new Date(at('00:00:00').getTime() - 1);
    const after = new Date(at('23:59:59.999').getTime() + 1);
    const rows = [before, ...times, after].map((settledAt) =>
      row(of, { settledAt, requestId: randomUUID(), externalUser: 'adam' }),
    );
    await stack.db.insert(ledger).values(rows);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const openIn = async (timezoneId: string, locale: string) => {
    const ui = await openConsole(browser, stack, { timezoneId, locale });
    await signIn(ui, stack.apiKey);
    const { page } = ui;
    const go = async (place: string) => {
      await page.goto(`${stack.consoleUrl}#/${place}`);
      await page.getByRole('heading', { level: 1, name: /^(Requests|Explore)$/ }).waitFor();
      await settled(page);
    };
    const expectCalls = (calls: number) =>
      eventually(async () => (await page.getByRole('row').count()) === calls + 1);
    return { page, problems: ui.problems, go, expectCalls };
  };

  test.each([
    ['Pacific/Auckland', 'en-NZ'],
    ['America/New_York', 'de-DE'],
  ])(
    '%s, a day in another zone links to its calls, also after another filter is chosen',
    async (zone, locale) => {
      const { page, go, expectCalls } = await openIn(zone, locale);
      await go('explore?by=day');
      expect(await page.getByLabel('Time zone').inputValue()).toBe(zone);
      await page.getByLabel('Time zone').selectOption('UTC');
      await page.getByRole('link', { name: DAY, exact: true }).click();
      await expectCalls(4);
      await page.getByLabel('User').fill('adam');
      await page.waitForURL(/external_user=adam/);
      await expectCalls(4);
      // The address means the same in every zone.
      expect(decodeURIComponent(page.url())).toContain(`from=${DAY}T00:00:00.000Z`);
      await page.context().close();
    },
  );

  test('the days of a report are in the shown zone, and link to their calls', async () => {
    const { page, go, expectCalls } = await openIn('Asia/Kathmandu', 'en-US');
    await go('explore?by=day');
    // Kathmandu is 5:45 ahead of UTC: three calls are before its midnight, and three after.
    const next = new Date(Date.parse(DAY) + 86_400_000).toISOString().slice(0, 10);
    const calls = async (day: string) =>
      (
        await page
          .getByRole('row', { name: new RegExp(`^${day}`) })
          .getByRole('cell')
          .first()
          .innerText()
      ).trim();
    expect([await calls(DAY), await calls(next)]).toEqual(['4', '2']);
    await page.getByRole('link', { name: next, exact: true }).click();
    await expectCalls(2);
    await page.context().close();
  });

  test('a range within a minute is unchanged when another filter is chosen', async () => {
    const { page, go, expectCalls } = await openIn('Asia/Kathmandu', 'en-US');
    await go(`requests?from=${DAY}T13:48:55.500Z&to=${DAY}T13:48:57Z`);
    await expectCalls(2);
    await page.getByLabel('Provider').fill('openai');
    await page.waitForURL(/provider=openai/);
    await expectCalls(2);
    await page.context().close();
  });

  test('a typed time is in the shown zone, and the address contains the time with its zone', async () => {
    const { page, go, expectCalls } = await openIn('Asia/Kathmandu', 'en-US');
    await go('requests');
    await expectCalls(6);
    await page.getByLabel('Time', { exact: true }).selectOption('Custom…');
    await page.getByLabel('From').fill(`${DAY}T19:33`);
    await page.waitForURL((url) => decodeURIComponent(url.href).includes(`from=${DAY}T13:48:00.000Z`));
    await expectCalls(4);
    expect(await page.getByLabel('From').inputValue()).toBe(`${DAY}T19:33`);
    await page.context().close();
  });

  test('a typed time that the clock skips moves on by an hour, and the days and hours around the change are whole', async () => {
    const { page, problems, go } = await openIn('Europe/Berlin', 'en-US');
    await go('requests?from=2026-03-28T00:00Z&to=2026-03-29T22:00Z');
    const from = page.getByLabel('From');
    // A year is typed digit by digit.
    for (const year of ['0002', '0020', '0202']) await from.fill(`${year}-03-29T02:30`);
    expect(page.url()).toContain('2026-03-28');
    // A second time, the address is the same.
    for (const _ of [1, 2]) {
      await from.fill('2026-03-29T02:30');
      await eventually(async () => decodeURIComponent(page.url()).includes('from=2026-03-29T01:30:00.000Z'));
      await eventually(async () => (await from.inputValue()) === '2026-03-29T03:30');
    }
    const slider = (name: string) => page.getByRole('slider', { name });
    const bars = async (name: string) =>
      Number(
        await slider(name)
          .getAttribute('max', { timeout: 1_000 })
          .catch(() => ''),
      ) + 1;
    await from.fill('2026-03-29T00:00');
    await eventually(async () => decodeURIComponent(page.url()).includes('from=2026-03-28T23:00:00.000Z'));
    await eventually(async () => (await bars('Hour of the chart')) === 23);
    // The third hour of the day is three o'clock.
    await slider('Hour of the chart').press('Home');
    for (const _ of [0, 1]) await slider('Hour of the chart').press('ArrowRight');
    await eventually(async () =>
      /^Mar 29, 03:00/.test((await slider('Hour of the chart').getAttribute('aria-valuetext')) ?? ''),
    );
    for (const month of ['2026-03', '2026-10']) {
      await go(`requests?time=${month}`);
      await eventually(async () => (await bars('Day of the chart')) === 31);
    }
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('the chosen period and zone are kept from page to page', async () => {
    const { page, go } = await openIn('UTC', 'en-US');
    await go('explore');
    await page.getByLabel('Time', { exact: true }).selectOption('Last month');
    await page.getByLabel('Time zone').selectOption('Asia/Tokyo');
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Requests' }).click();
    await page.waitForURL(/requests\?time=last-month&zone=Asia%2FTokyo/);
    expect(await page.getByLabel('Time zone').inputValue()).toBe('Asia/Tokyo');
    await page.context().close();
  });

  test('after an earlier month is chosen, later ones can be chosen, and a cleared start means 30 days before the end', async () => {
    const { page, go } = await openIn('UTC', 'en-US');
    await go('explore?zone=UTC');
    const times = page.getByLabel('Time', { exact: true });
    const options = () => times.getByRole('option').allInnerTexts();
    const all = await options();
    const values = await page.evaluate(
      `Array.from(document.querySelectorAll('[aria-label="Time"] option'), ({ value }) => value)`,
    );
    const months = (values as string[]).filter((each) => /^\d{4}-/.test(each));
    expect(months).toHaveLength(11);
    await times.selectOption(months[7] ?? '');
    await page.waitForURL(new RegExp(`time=${months[7]}`));
    expect(await options()).toEqual(all);
    await page.goto(`${stack.consoleUrl}#/explore?zone=UTC&from=2026-01-31T00:00Z&to=2026-03-03T12:00Z`);
    await page.getByLabel('From').fill('');
    await eventually(async () => (await page.getByLabel('From').inputValue()) === '2026-02-01T12:00');
    await page.context().close();
  });

  test('a filter in Unix seconds, as in the API, is shown', async () => {
    const { page, go, expectCalls } = await openIn('UTC', 'en-US');
    await go(`requests?from=${at('13:48:00').getTime() / 1_000}`);
    await expectCalls(4);
    expect(await page.getByLabel('From').inputValue()).toBe(`${DAY}T13:48`);
    await page.context().close();
  });
});
