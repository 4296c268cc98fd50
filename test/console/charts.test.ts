import { callHours, ledger } from '@presign/schema/ledger-tables';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { deferred, eventually } from '../harness/eventually.ts';
import { ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';

/** A whole day of UTC, within the last week. */
const DAY = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10);
const NEXT = new Date(Date.parse(DAY) + 86_400_000).toISOString().slice(0, 10);
const at = (hour: string) => new Date(`${DAY}T${hour}:10:00Z`);
/** The days of a week that ends after the next one. */
const WEEK = { from: new Date(Date.parse(NEXT) - 6 * 86_400_000).toISOString(), days: 7 };

describe.skipIf(!hasChromium)('the charts of the console', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    const account = await ownAccount(stack);
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account };
    const failed = { failure: 'provider_error', status: 500 } as const;
    const call = (user: string, hour: string, dollars: number, fields: object = {}) =>
      row(of, {
        ...{ externalUser: user, settledAt: at(hour), model: 'm-1', costMicrousd: dollars * 1_000_000 },
        ...fields,
      });
    await stack.db.insert(ledger).values([
      // By name, the one who costs least is first.
      call('adam', '09', 1),
      call('adam', '09', 0, failed),
      call('zoe', '09', 7),
      call('zoe', '14', 8, { provider: 'anthropic', model: 'm-2' }),
      call('grace', '14', 3),
    ]);
    const hour = { accountId: account, provider: 'openai', model: 'm-1' };
    const begun = (hours: string) => new Date(`${DAY}T${hours}:00:00Z`);
    await stack.db.insert(callHours).values([
      { ...hour, hour: begun('09'), outcome: 'passed', calls: 2 },
      { ...hour, hour: begun('09'), outcome: 'provider_error', calls: 1 },
      { ...hour, hour: begun('14'), outcome: 'passed', calls: 1 },
      { ...hour, hour: begun('14'), outcome: 'passed', calls: 1, provider: 'anthropic', model: 'm-2' },
    ]);
    ui = await openConsole(browser, stack, { timezoneId: 'UTC' });
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const week = `zone=UTC&from=${WEEK.from}&to=${NEXT}T23:59:59.999Z`;
  const day = `zone=UTC&from=${DAY}T00:00:00.000Z&to=${NEXT}T00:00:00.000Z`;
  const chart = (label: string) => ui.page.getByRole('img', { name: label });
  /** Where a bar is: the axis has room for half a bar more on both sides. */
  const placeOf = async (label: string, bar: number, bars: number) => {
    const box = await chart(label).locator('.u-over').boundingBox();
    return { x: (box?.x ?? 0) + ((box?.width ?? 0) * (bar + 1)) / (bars + 1), y: (box?.y ?? 0) + 100 };
  };
  const hover = async (label: string, bar: number, bars: number) => {
    const { x, y } = await placeOf(label, bar, bars);
    await ui.page.mouse.move(x - 1, y);
    await ui.page.mouse.move(x, y);
  };
  /** A press that a redraw swallows changes no address, and is made again. */
  const pick = (label: string, bar: number, bars: number, address: string) =>
    eventually(async () => {
      const isThere = async () =>
        decodeURIComponent(String(await ui.page.evaluate('location.hash'))).includes(address);
      if (await isThere()) return true;
      const { x, y } = await placeOf(label, bar, bars);
      await ui.page.mouse.click(x, y);
      return isThere();
    });
  const isTip = async (expected: readonly string[]) => {
    const [tip = ''] = await ui.page.getByRole('tooltip').allInnerTexts();
    return JSON.stringify(tip.split(/\s*\n\s*/)) === JSON.stringify(expected);
  };
  /** A chart that is redrawn, or is not yet in its place, is pointed at again. */
  const expectTip = (label: string, bar: number, bars: number, expected: readonly string[]) =>
    eventually(async () => {
      await hover(label, bar, bars);
      return isTip(expected);
    });
  const named = (ms: number) =>
    new Date(ms).toLocaleDateString('en-US', { month: 'short', day: 'numeric', timeZone: 'UTC' });
  const users = async () =>
    (await ui.page.getByRole('table', { name: 'Usage' }).getByRole('rowheader').allInnerTexts()).map((each) =>
      each.trim(),
    );

  test('Explore: the highest cost is first, and the column heads change the order', async () => {
    const { page } = ui;
    await ui.go(`explore?by=external_user&${week}`);
    await eventually(async () => (await users()).join() === 'zoe,grace,adam');
    const head = (name: string) => page.getByRole('columnheader', { name });
    expect(await head('Cost').getAttribute('aria-sort')).toBe('descending');
    await head('user').getByRole('button').click();
    expect(await users()).toEqual(['adam', 'grace', 'zoe']);
    expect(await head('Cost').getAttribute('aria-sort')).toBeNull();
    await head('Cost').getByRole('button').click();
    expect(await users()).toEqual(['zoe', 'grace', 'adam']);
    await page.getByLabel('Sum by').selectOption('model');
    await page.getByRole('rowheader', { name: 'm-2' }).waitFor();
    expect(await users()).toEqual(['m-1', 'm-2']);
    await page.getByLabel('And by').selectOption('user');
    await page.getByRole('row', { name: /^m-2 zoe/ }).waitFor();
    expect((await users())[0]).toBe('m-2');
  });

  const spending = 'Spending of each day (UTC) by user';

  test('Explore: the mouse shows the figures of a day, and a click opens the requests of the day', async () => {
    const { page } = ui;
    await ui.go(`explore?by=external_user&model=m-1&${week}`);
    await expectTip(spending, WEEK.days - 2, WEEK.days, [
      named(Date.parse(DAY)),
      'zoe',
      '$7.00',
      'grace',
      '$3.00',
      'adam',
      '$1.00',
    ]);
    expect(await ui.violations()).toEqual([]);
    await expectTip(spending, WEEK.days - 1, WEEK.days, [
      named(Date.parse(NEXT)),
      'zoe',
      '$0.00',
      'grace',
      '$0.00',
      'adam',
      '$0.00',
    ]);
    await page.mouse.move(0, 0);
    await eventually(async () => (await page.getByRole('tooltip').count()) === 0);
    await pick(spending, WEEK.days - 2, WEEK.days, `from=${DAY}T00:00:00.000Z&to=${NEXT}T00:00:00.000Z`);
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    expect(decodeURIComponent(page.url())).toContain(`from=${DAY}T00:00:00.000Z&to=${NEXT}T00:00:00.000Z`);
    expect(page.url()).toContain('model=m-1');
    await eventually(async () => (await page.getByRole('row').count()) === 5);
    // The keyboard has the same figures and the same way in the table.
    await ui.go(`explore?by=day&model=m-1&${week}`);
    await page.getByRole('link', { name: DAY, exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    expect(decodeURIComponent(page.url())).toContain(`from=${DAY}T00:00:00.000Z&to=${NEXT}T00:00:00.000Z`);
  });

  const byDay = 'Requests of each day (UTC) by outcome';
  const byHour = 'Requests of each hour (UTC) by outcome';

  test('Requests: a click on a day shows its hours, and a click on an hour shows its calls', async () => {
    const { page } = ui;
    await ui.go(`requests?${week}`);
    await expectTip(byDay, WEEK.days - 2, WEEK.days, [
      named(Date.parse(DAY)),
      'passed',
      '4',
      'failed',
      '1',
      'refused',
      '0',
    ]);
    await pick(byDay, WEEK.days - 2, WEEK.days, `from=${DAY}T00:00:00.000Z&to=${NEXT}T00:00:00.000Z`);
    await expectTip(byHour, 9, 24, [`${named(Date.parse(DAY))}, 09:00`, 'passed', '2', 'failed', '1']);
    expect(await ui.violations()).toEqual([]);
    await expectTip(byHour, 14, 24, [`${named(Date.parse(DAY))}, 14:00`, 'passed', '2', 'failed', '0']);
    await pick(byHour, 14, 24, `from=${DAY}T14:00:00.000Z&to=${DAY}T15:00:00.000Z`);
    await eventually(async () => (await page.getByRole('row').count()) === 3);
  });

  test('Requests: the keyboard chooses an hour of the chart, has its figures, and opens its calls', async () => {
    const { page } = ui;
    await ui.go(`requests?${day}`);
    await chart(byHour).locator('canvas').waitFor();
    const hours = page.getByRole('slider', { name: 'Hour of the chart' });
    const expectHour = (hour: string, figures: string) =>
      eventually(
        async () =>
          (await hours.getAttribute('aria-valuetext')) === `${named(Date.parse(DAY))}, ${hour}: ${figures}`,
      );
    await hours.press('Home');
    await expectHour('00:00', 'passed 0, failed 0');
    for (let hour = 0; hour < 9; hour++) await hours.press('ArrowRight');
    await expectHour('09:00', 'passed 2, failed 1');
    await eventually(() => isTip([`${named(Date.parse(DAY))}, 09:00`, 'passed', '2', 'failed', '1']));
    expect(await hours.isVisible()).toBe(true);
    expect(await ui.violations()).toEqual([]);
    await hours.press('Enter');
    await eventually(async () => (await page.getByRole('row').count()) === 4);
    expect(decodeURIComponent(page.url())).toContain(`from=${DAY}T09:00:00.000Z&to=${DAY}T10:00:00.000Z`);
  });

  test('Requests: hours can be filtered by provider or model; with another filter the chart shows days, and says so', async () => {
    const { page } = ui;
    await ui.go(`requests?provider=anthropic&${day}`);
    await expectTip(byHour, 14, 24, [`${named(Date.parse(DAY))}, 14:00`, 'passed', '1', 'failed', '0']);
    await page.getByText('Refused calls are counted by the day alone').waitFor();
    await ui.go(`requests?external_user=adam&${day}`);
    await chart(byDay).waitFor();
    await page.getByText('Calls with these filters are summed by the day').waitFor();
    expect(await chart(byHour).count()).toBe(0);
  });

  test('Requests: while hours load no old ones are shown, and a refusal is shown', async () => {
    const { page } = ui;
    await ui.go(`requests?${day}`);
    await chart(byHour).waitFor();
    const { promise, resolve } = deferred();
    await page.route(/\/v1\/usage\/hours\?/, async (route) => {
      await promise;
      await route.fulfill({
        status: 400,
        json: { error: { code: 'invalid_request', message: 'No hours.' } },
      });
    });
    await page.goto(
      `${stack.consoleUrl}#/requests?zone=UTC&from=${NEXT}T00:00:00.000Z&to=${NEXT}T12:00:00.000Z`,
    );
    await eventually(async () => (await page.getByText('Loading…').count()) > 0);
    await page.getByRole('table', { name: 'Requests' }).or(page.getByText('No call fits.')).waitFor();
    expect(await chart(byHour).count()).toBe(0);
    resolve();
    await page.getByRole('alert').filter({ hasText: 'No hours.' }).waitFor();
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('Requests: the links of providers and models filter the calls, and remove the filter again', async () => {
    const { page } = ui;
    const facets = async (name: string) =>
      (await page.getByRole('navigation', { name }).getByRole('link').allInnerTexts()).map((each) =>
        each.replace(/\s+/g, ' ').trim(),
      );
    const expectFacets = (name: string, expected: readonly string[]) =>
      eventually(async () => JSON.stringify(await facets(name)) === JSON.stringify(expected));
    const press = (name: string, value: RegExp) =>
      page.getByRole('navigation', { name }).getByRole('link', { name: value }).click();
    await ui.go(`requests?${week}`);
    await expectFacets('Providers', ['openai 4', 'anthropic 1']);
    await expectFacets('Models', ['m-1 4', 'm-2 1']);
    await press('Providers', /^anthropic/);
    await page.waitForURL(/provider=anthropic/);
    await expectFacets('Providers', ['openai 4', 'anthropic 1']);
    await expectFacets('Outcomes', ['all', 'passed 1', 'failed 0', 'refused']);
    await eventually(async () => (await page.getByRole('row').count()) === 2);
    await press('Providers', /^anthropic/);
    await page.waitForURL((url) => !url.href.includes('provider='));
    await press('Outcomes', /^failed/);
    await expectFacets('Models', []);
    await eventually(async () => (await page.getByRole('row').count()) === 2);
    expect(ui.problems).toEqual([]);
  });

  test('a list that may contain refused calls says which ones it contains, and another list says nothing', async () => {
    const { page } = ui;
    const note = page.getByText('The list has the first ten refused calls of an hour');
    await ui.go(`requests?outcome=refused&${week}`);
    await note.waitFor();
    await ui.go('customers/zoe');
    await note.waitFor();
    await ui.go(`requests?outcome=passed&${week}`);
    await page.getByRole('table', { name: 'Requests' }).waitFor();
    expect(await note.count()).toBe(0);
  });
});
