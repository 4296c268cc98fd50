import { ledger, refusalDays } from '@presign/schema/ledger-tables';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { deferred, eventually } from '../harness/eventually.ts';
import { addApiKey, addVirtualKey, ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, startConsole } from './console-stack.ts';

const today = new Date().toISOString().slice(0, 10);

describe.skipIf(!hasChromium)('the console with calls of customers, teams and servers', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([
      startConsole({ issuer: { usageMetadata: ['team'] } }),
      openChromium(),
    ]);
    const account = await ownAccount(stack);
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account };
    const settledAt = new Date();
    const tool = {
      provider: 'mcp',
      server: 'wiki',
      tool: 'add',
      totalMs: 5,
      externalUser: 'grace',
      settledAt,
    };
    const team = { externalUser: 'adam', tags: { team: 'blue' }, settledAt };
    await stack.db
      .insert(ledger)
      .values([
        row(of, tool),
        row(of, { ...tool, tags: { team: 'blue' }, failure: 'provider_error', status: 500 }),
        row(of, team),
        row(of, { ...team, provider: 'anthropic' }),
        row(of, { ...team, tags: { team: 'red' } }),
      ]);
    await stack.db
      .insert(refusalDays)
      .values({ accountId: account, day: today, code: 'uses_exhausted', name: '', calls: '5' });
    await addApiKey(stack, account, { name: 'Same', scopes: ['read'] });
    await addVirtualKey(stack, account, { name: 'Same' });
    await addApiKey(stack, account, { name: 'Twice' });
    await addApiKey(stack, account, { name: 'Twice' });
    ui = await openConsole(browser, stack, { timezoneId: 'UTC' });
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const facets = async () =>
    (await ui.page.getByRole('navigation', { name: 'Outcomes' }).getByRole('link').allInnerTexts()).map(
      (each) => each.replace(/\s+/g, ' ').trim(),
    );
  const expectFacets = (expected: readonly string[]) =>
    eventually(async () => {
      const shown = await facets().catch(() => []);
      return JSON.stringify(shown) === JSON.stringify(expected);
    });

  test('the sums of requests follow every filter of the list, and say that refused calls are those of the whole account', async () => {
    await ui.go('requests');
    await expectFacets(['all 10', 'passed 4', 'failed 1', 'refused 5']);
    await ui.go('requests?metadata.team=blue');
    await expectFacets(['all', 'passed 2', 'failed 1', 'refused']);
    expect(await ui.page.getByRole('figure').getByText('refused').count()).toBe(0);
    expect(await ui.text()).toContain('Refused calls are counted for the account as a whole');
    await ui.go('requests?server=wiki');
    await expectFacets(['all', 'passed 1', 'failed 1', 'refused']);
    await ui.go('requests?outcome=refused&failure=uses_exhausted');
    await ui.page.getByText('Calls are not summed by URL or by code').waitFor();
    expect(await ui.violations()).toEqual([]);
  });

  test('a filter in a link that the form lacks is shown, kept at the next change, and can be removed', async () => {
    const { page } = ui;
    await ui.go('requests?metadata.team=blue&server=wiki');
    expect(await page.getByLabel('team', { exact: true }).inputValue()).toBe('blue');
    expect(await page.getByLabel('server', { exact: true }).inputValue()).toBe('wiki');
    await page.getByLabel('Outcome', { exact: true }).selectOption('failed');
    await page.waitForURL(/outcome=failed/);
    expect(page.url()).toContain('metadata.team=blue');
    expect(page.url()).toContain('server=wiki');
    await eventually(async () => (await page.getByRole('row').count()) === 2);
    await page.getByLabel('server', { exact: true }).fill('');
    await page.waitForURL((url) => !url.href.includes('server='));
    expect(page.url()).toContain('metadata.team=blue');
    await page.keyboard.press('Tab');
    await page.getByLabel('Outcome', { exact: true }).selectOption('');
    await eventually(async () => (await page.getByRole('row').count()) === 4);
    await eventually(async () => (await page.getByLabel('server', { exact: true }).count()) === 0);
  });

  test('the search also offers the typed text as a customer, if the suggestions lack it', async () => {
    const { page } = ui;
    await ui.go('requests');
    await page.keyboard.press('Control+K');
    await page.keyboard.type('zz/top 100%');
    await page.getByRole('option', { name: 'zz/top 100% customer, as typed' }).waitFor();
    expect(await page.getByText('Nothing found.').count()).toBe(0);
    await eventually(async () => (await page.getByText('Searching…').count()) === 0);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'zz/top 100%' }).waitFor();
    await eventually(async () => /This month\n\$0\.00\nForecast\n\$0\.00/.test(await ui.text()));
    await page.keyboard.press('Control+K');
    await page.keyboard.type('adam');
    await page.getByRole('option', { name: 'adam customer' }).waitFor();
    expect(await page.getByRole('listbox', { name: 'Found' }).getByRole('option').count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'adam' }).waitFor();
  });

  test('a share of refused calls is of days of UTC, and names them if the shown days are others', async () => {
    await ui.go('?zone=UTC');
    await eventually(async () => /Refused, by days of UTC\n50\.0 %/.test(await ui.text()));
    await ui.go('?zone=Asia%2FKathmandu');
    await eventually(async () =>
      /Refused, by days of UTC\n50\.0 %\s+\w+ \d+ – \w+ \d+\n/.test(await ui.text()),
    );
    await ui.go('?zone=UTC&time=2020-01');
    await eventually(async () => /Refused, by days of UTC\n–/.test(await ui.text()));
    expect(await ui.text()).toContain('No refusal of this time is kept.');
    await ui.go('?zone=UTC&time=today');
    await eventually(async () => /Refused, by days of UTC\n50\.0 %/.test(await ui.text()));
  });

  test('customers, the forecast and the previous period stay visible and in order while reports refresh', async () => {
    const own = await openConsole(browser, stack, { timezoneId: 'UTC' });
    const { page } = own;
    await page.clock.install();
    await signIn(own, stack.apiKey);
    await own.open('Customers');
    const sorted = page.getByRole('columnheader', { name: 'Customer', exact: true });
    await sorted.getByRole('button').click();
    let held = deferred();
    let asked = 0;
    /** Holds the answers of all reports while the page asks for them again. */
    const whileAsked = async (look: () => Promise<void>) => {
      held = deferred();
      asked = 0;
      await page.route(/\/v1\/usage\?/, async (route) => {
        asked++;
        await held.promise;
        await route.continue();
      });
      await page.clock.fastForward(31_000);
      await eventually(async () => asked > 0);
      await look();
      held.resolve();
      await page.unrouteAll({ behavior: 'wait' });
    };
    await whileAsked(async () => {
      expect(await sorted.getAttribute('aria-sort')).toBe('ascending');
      expect(await page.getByRole('rowheader', { name: 'adam' }).count()).toBe(1);
    });
    await own.open('Home');
    const whole = async () => !/^…$|Loading…/m.test(await page.locator('main').innerText());
    await eventually(whole);
    await whileAsked(async () => {
      expect(await whole()).toBe(true);
      expect(await page.getByRole('table', { name: 'Customers who moved most' }).count()).toBe(1);
    });
    await page.context().close();
  });

  test('a budget covers the key of the chosen kind, and a name that two keys share is refused', async () => {
    const { page } = ui;
    const dialog = page.getByRole('dialog');
    await ui.open('Limits');
    await page.getByRole('button', { name: 'Create a budget' }).click();
    await dialog.getByLabel('Name').fill('Of a virtual key');
    await dialog.getByLabel('Covers').selectOption('virtual_key');
    await dialog.getByLabel('Which').fill('Twice');
    await dialog.getByLabel('Uses').fill('5');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.getByText('no virtual key among the newest has the name Twice').waitFor();
    await dialog.getByLabel('Covers').selectOption('api_key');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.getByText('2 API keys have the name Twice').waitFor();
    await dialog.getByLabel('Covers').selectOption('virtual_key');
    await dialog.getByLabel('Which').fill('Same');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page
      .getByRole('row')
      .filter({ hasText: 'Of a virtual key' })
      .getByText('virtual key Same')
      .waitFor();
    expect(ui.problems).toEqual([]);
  });

  /** Answers a route of the API only when the returned function is called. */
  const hold = async (route: RegExp) => {
    const { promise, resolve } = deferred();
    await ui.page.route(route, async (each) => {
      await promise;
      await each.continue();
    });
    return async () => {
      resolve();
      await ui.page.unrouteAll({ behavior: 'wait' });
    };
  };

  test('the suggestions of a new budget follow the typed text, also for a user without calls', async () => {
    const { page } = ui;
    const body = { ...CHAT, client_api_key: 'sk-sandbox', external_user: 'hopper' };
    expect((await stack.presign(body, { authorization: `Bearer ${stack.apiKey}` })).status).toBe(200);
    const dialog = page.getByRole('dialog');
    await ui.open('Limits');
    await page.getByRole('button', { name: 'Create a budget' }).click();
    await dialog.getByLabel('Which').fill('hopp');
    await eventually(async () => (await dialog.locator('option[value="hopper"]').count()) === 1);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  });

  test('a budget covers a key by its name, even if the key names load after the dialog opens', async () => {
    const { page } = ui;
    const dialog = page.getByRole('dialog');
    await ui.open('Limits');
    const release = await hold(/\/v1\/api-keys\?/);
    await page.reload();
    await page.getByRole('button', { name: 'Create a budget' }).click();
    await dialog.getByLabel('Name').fill('Of an API key');
    await dialog.getByLabel('Covers').selectOption('api_key');
    await dialog.getByLabel('Which').fill('Same');
    await dialog.getByLabel('Uses').fill('5');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await release();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('row').filter({ hasText: 'Of an API key' }).getByText('API key Same').waitFor();
    expect(ui.problems).toEqual([]);
  });

  const finder = () => ui.page.getByRole('dialog', { name: 'Search' });
  const openFinder = async () => {
    await ui.page.keyboard.press('Control+K');
    await eventually(async () => (await ui.page.evaluate('document.activeElement.role')) === 'combobox');
  };

  test('Enter waits for the answer of the search, and opens the customer that it found', async () => {
    const { page } = ui;
    await ui.go('requests');
    const release = await hold(/\/v1\/search\?/);
    await openFinder();
    await page.keyboard.type('grac');
    await finder().getByText('Searching…').waitFor();
    await page.keyboard.press('Enter');
    expect(await finder().isVisible()).toBe(true);
    expect(page.url()).toContain('#/requests');
    await release();
    await page.getByRole('heading', { level: 1, name: 'grace', exact: true }).waitFor();
    await finder().waitFor({ state: 'hidden' });
  });

  test('the search says if there may be more names, or not all were searched', async () => {
    const { page } = ui;
    await page.route(/\/v1\/search\?.*contains=qq1/, (route) =>
      route.fulfill({ json: { data: [], complete: false } }),
    );
    await page.route(/\/v1\/search\?.*contains=qq2/, (route) =>
      route.fulfill({ status: 400, json: { error: { code: 'invalid_request', message: 'Refused.' } } }),
    );
    await ui.go('requests');
    await openFinder();
    const field = finder().getByRole('combobox');
    await field.fill('qq1');
    await finder().getByText('There may be more: type the beginning of the name.').waitFor();
    await field.fill('qq2');
    await finder().getByText('Not all names were searched.').waitFor();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });
});
