import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createPresign, type Presign } from '@presign/client';
import { buildConsole } from '@presign/console/build';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Local, startLocalForDocs } from '../docs/local.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { parseCsv } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { callOnce } from './console-stack.ts';

const WIDTHS = [
  ['a phone', { width: 390, height: 844 }],
  ['a laptop', { width: 1280, height: 800 }],
  ['a desktop', { width: 1440, height: 900 }],
] as const;

/** Ids of what the screens of one thing show. */
type Ids = Readonly<Record<'session' | 'call' | 'webhook', string>>;

/** Tables by caption, each with the columns that may be out of sight. */
type Tables = Readonly<Record<string, readonly string[]>>;

const BUDGET = ['Held', 'Uses', 'Tokens', 'Window'];

/** The tables of each screen. The next screen has other tables. */
const TABLES: readonly (readonly [(ids: Ids) => string, Tables])[] = [
  [
    () => '',
    {
      ...{ 'This month by customer': [], 'Customers who moved most': [], 'Refusals by code': [] },
      'Limits that hold money or are near their end': [],
    },
  ],
  [
    () => 'customers/grace',
    { 'Last refusals': [], 'Shared budgets': BUDGET, 'URLs of this customer': [], Statement: [] },
  ],
  [() => 'customers', { 'This month by customer': [] }],
  [() => 'requests', { Requests: [] }],
  [({ call }) => `requests/${call}`, { 'Price of this call': [], 'Similar calls': [] }],
  [() => 'explore?by=external_user&then=model', { Usage: [] }],
  [() => 'limits', { 'Shared budgets': BUDGET }],
  [() => 'requests?outcome=refused', { Requests: [] }],
  [() => 'alerts', { Alerts: [] }],
  [() => 'urls', { URLs: [] }],
  [({ session }) => `urls/${session}`, { 'URLs of this session': ['Calls'] }],
  [() => 'keys', { 'API keys': [], 'Virtual keys': [] }],
  [() => 'requests?outcome=failed', { Requests: [] }],
  [() => 'webhooks', { Webhooks: [] }],
  [({ webhook }) => `webhooks/${webhook}`, { Deliveries: [] }],
  [() => 'audit', { Changes: [] }],
  [() => 'issue', { 'Calls by model': [], 'Budgets that will apply': [] }],
];

/** An expression: the tables of a page by caption, each with the heads of the columns that are cut or behind its buttons. */
const OUT_OF_SIGHT = `Object.fromEntries([...document.querySelectorAll('section.scroll')].map((box) => {
  const right = (box.querySelector('th.actions')?.getBoundingClientRect().left ?? box.getBoundingClientRect().right) + 1;
  const heads = [...box.querySelectorAll('thead th:not(.actions)')];
  const cut = heads.filter((head) => head.getBoundingClientRect().right > right);
  return [box.ariaLabel, cut.map((head) => head.textContent.replace(/\\s?[↕↑↓]$/, ''))];
}))`;

describe.skipIf(!hasChromium)('with the sample of `pnpm start`', () => {
  let local: Local;
  let browser: Browser;
  let api: Presign;
  let key: string;
  let url: string;

  beforeAll(async () => {
    await buildConsole();
    local = await startLocalForDocs({ ALLOW_PRIVATE_UPSTREAMS: 'true' });
    await local.writeSample?.(() => {});
    url = `http://127.0.0.1:${local.issuerPort}`;
    key = readFileSync(join(local.folder, '.presign', 'sample-api-key'), 'utf8').trim();
    api = createPresign({ url, apiKey: key });
    browser = await openChromium();
  }, 900_000);
  afterAll(async () => {
    await leaveChromium();
    await local?.close();
  });

  const open = async (viewport: { width: number; height: number }, apiKey = key): Promise<ConsolePage> => {
    const stack = { issuerUrl: url, consoleUrl: `${url}/console/` };
    const ui = await openConsole(browser, stack, { viewport });
    await signIn(ui, apiKey);
    return ui;
  };
  const texts = ({ page }: ConsolePage) => page.locator('main').innerText();
  const leave = async (ui: ConsolePage) => {
    expect(ui.problems).toEqual([]);
    await ui.page.context().close();
  };
  /** Nothing is wider than the screen, and each button can be seen. */
  const expectFits = async ({ page }: ConsolePage) => {
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
  };

  test.each(WIDTHS)('on %s: why was this customer refused at this time?', async (_name, size) => {
    const ui = await open(size);
    const { page } = ui;
    await page.keyboard.press('Control+K');
    await page.keyboard.type('grac');
    await page.getByRole('option', { name: 'grace customer' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'grace' }).waitFor();
    const refusals = page.getByRole('table', { name: 'Last refusals' });
    await refusals.getByText('because the budget Grace, plan Trial had $0.02 left').first().waitFor();
    await settled(page);
    await expectFits(ui);
    if (size.width === 1440) await ui.picture('customer');
    await page.setViewportSize(size);
    await refusals.getByRole('row').nth(1).getByRole('link').first().click();
    await page
      .locator('p.lead')
      .getByText(/^Refused, because the budget Grace, plan Trial had \$0\.02 left, and the call/)
      .waitFor();
    await page.getByRole('link', { name: 'Grace, plan Trial' }).waitFor();
    await settled(page);
    await expectFits(ui);
    if (size.width === 1440) await ui.picture('refusal');
    expect(await ui.violations()).toEqual([]);
    await page.setViewportSize(size);
    await page.getByRole('link', { name: 'Grace, plan Trial' }).click();
    await page.getByRole('heading', { level: 1, name: 'Grace, plan Trial' }).waitFor();
    await settled(page);
    expect(await texts(ui)).toContain('user grace');
    await leave(ui);
  });

  test.each(WIDTHS)('on %s: what will this month cost, by customer?', async (_name, size) => {
    const ui = await open(size);
    const { page } = ui;
    const month = new Date().toISOString().slice(0, 8).concat('01');
    const { data, total } = await api.getUsage({ from: month, group_by: ['external_user'] });
    const costs = page.getByRole('table', { name: 'This month by customer' });
    const amount = async (name: string, column: number) => {
      const cell = costs.locator('tr').filter({ hasText: name }).locator('td.figure').nth(column);
      return Math.round(Number((await cell.innerText()).replace(/[^\d.]/g, '')) * 1e6);
    };
    await costs.waitFor();
    expect(await amount('All customers', 0)).toBe(total.cost);
    const katherine = data.find(({ external_user: user }) => user === 'katherine')?.cost ?? 0;
    expect(await amount('katherine', 0)).toBe(katherine);
    const week = await api.getUsage({
      from: Math.floor(Date.now() / 1000) - 7 * 86_400,
      external_user: 'katherine',
    });
    const [year = 0, next = 0] = month.split('-').map(Number);
    const left = (Date.UTC(year, next, 1) - Date.now()) / 86_400_000;
    const expected = katherine + (week.total.cost / 7) * left;
    expect(Math.abs((await amount('katherine', 1)) - expected)).toBeLessThan(20_000);
    await expectFits(ui);
    await settled(page);
    if (size.width === 1440) await ui.picture('sample', 700);
    expect(await ui.violations()).toEqual([]);
    await leave(ui);
  });

  test('a customer was billed twice: similar calls are shown with a call, and each has its own price', async () => {
    const { url: shared } = await api.presign({
      ...{ provider: 'sandbox', path: '/v1/chat/completions', client_api_key: 'sk-sandbox' },
      external_user: 'twice',
    });
    const call = async () => {
      const body = JSON.stringify({ model: 'sandbox-1', messages: [{ role: 'user', content: 'Hello' }] });
      const headers = { 'content-type': 'application/json', 'x-stainless-retry-count': '1' };
      const answer = await fetch(shared, { method: 'POST', headers, body });
      await answer.arrayBuffer();
      return answer.headers.get('x-presign-request-id') ?? '';
    };
    const [first, second] = [await call(), await call()];
    await eventually(async () => (await api.listCalls({ external_user: 'twice' })).data.length === 2);
    const ui = await open(WIDTHS[1][1]);
    const { page } = ui;
    await page.goto(`${url}/console/#/requests/${first}`);
    const similar = page.getByRole('table', { name: 'Similar calls' });
    await similar.getByRole('link').first().waitFor();
    expect(await similar.getByRole('row').count()).toBe(2);
    expect(await texts(ui)).toContain('Repeated by the SDK\n1');
    await similar.getByRole('row').nth(1).getByRole('link').first().click();
    await page.getByRole('heading', { level: 1, name: `Request ${second.slice(0, 8)}` }).waitFor();
    await page
      .getByRole('row', { name: /^Charged/ })
      .first()
      .waitFor();
    await leave(ui);
  });

  test('a customer’s budget is raised, a statement saved, and all URLs revoked', async () => {
    const ui = await open(WIDTHS[1][1]);
    const { page } = ui;
    await page.goto(`${url}/console/#/customers/hedy?time=month&zone=UTC`);
    await page.getByRole('button', { name: 'Change Hedy, plan Team' }).click();
    await page.getByRole('dialog').getByLabel('Limit in dollars').fill('55');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByRole('cell', { name: '$55.00' }).waitFor();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Statement as CSV' }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toBe('statement-hedy.csv');
    const [head = [], ...lines] = parseCsv(
      Buffer.concat(await (await file.createReadStream()).toArray()).toString(),
    );
    const sum = lines.reduce((all, line) => all + Number(line[head.indexOf('cost')]), 0);
    const month = new Date().toISOString().slice(0, 8).concat('01');
    expect(sum).toBe((await api.getUsage({ from: month, external_user: 'hedy' })).total.cost);
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByRole('table', { name: 'Statement' }).isVisible()).toBe(true);
    expect(await page.getByRole('navigation', { name: 'Screens' }).isVisible()).toBe(false);
    await page.emulateMedia({ media: 'screen' });
    await page.getByRole('button', { name: 'Revoke all URLs' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await eventually(async () => {
      const { data } = await api.listSessions({ external_user: 'hedy', status: 'active' });
      return data.length === 0;
    });
    await leave(ui);
  });

  test('tables are sorted by the keyboard, filters apply when they are chosen, and the buttons stay in view', async () => {
    const ui = await open(WIDTHS[1][1]);
    const { page } = ui;
    await ui.open('Limits');
    const names = () =>
      page.getByRole('table', { name: 'Shared budgets' }).getByRole('rowheader').allInnerTexts();
    const fullest = await names();
    expect(fullest[0]).toBe('Grace, plan Trial');
    await page.getByRole('button', { name: 'Budget' }).first().focus();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Shift+Tab');
    await page.getByRole('columnheader', { name: 'Budget' }).getByRole('button').focus();
    await page.keyboard.press('Enter');
    expect(await names()).toEqual(fullest.toSorted((a, b) => a.localeCompare(b)));
    expect(await page.getByRole('columnheader', { name: 'Budget' }).getAttribute('aria-sort')).toBe(
      'ascending',
    );
    for (const { width, height } of [WIDTHS[1][1], WIDTHS[2][1]]) {
      await page.setViewportSize({ width, height });
      const box = await page.getByRole('button', { name: 'Delete Ada, plan Pro' }).boundingBox();
      expect((box?.x ?? width) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
    }
    await ui.open('Explore');
    await page.getByLabel('Sum by').selectOption('team');
    await page.getByRole('rowheader', { name: 'research' }).waitFor();
    await page.getByLabel('And by').selectOption('tool');
    await page.getByRole('row', { name: /^research add/ }).waitFor();
    await leave(ui);
  });

  /** Adds to the sample an endpoint that does not answer, an alert, and two equal calls. */
  const addRest = async (): Promise<Ids> => {
    const { id: webhook } = await api.createWebhook({ url: 'http://127.0.0.1:9/services/events/production' });
    await api.testWebhook({ id: webhook });
    const condition = { errors: { percent: 10, calls: 20, minutes: 15 } };
    await api.createAlert({ name: 'Errors of the production backend', condition, webhook });
    const issued = await api.presign({
      ...{ provider: 'sandbox', path: '/v1/chat/completions', client_api_key: 'sk-sandbox' },
      external_user: 'again',
    });
    const call = async () => (await callOnce(issued.url, 'Hello')).headers.get('x-presign-request-id') ?? '';
    const ids = { webhook, session: issued.session_id, call: await call() };
    await call();
    await eventually(async () => (await api.listCalls({ external_user: 'again' })).data.length === 2);
    return ids;
  };
  let ids: Promise<Ids> | undefined;
  const expectInSight = async (ui: ConsolePage, place: string, tables: Tables) => {
    await ui.go(place);
    const seen = await eventually(async () => {
      const found = (await ui.page.evaluate(OUT_OF_SIGHT)) as Record<string, string[]>;
      return Object.keys(tables).every((caption) => caption in found) && found;
    });
    expect(Object.keys(seen), place).toEqual(Object.keys(tables));
    for (const [caption, cut] of Object.entries(seen))
      expect(
        cut.filter((head) => !tables[caption]?.includes(head)),
        `${caption} at #/${place}`,
      ).toEqual([]);
    await expectFits(ui);
  };

  test.each(WIDTHS.slice(1))(
    'on %s, the columns that answer a question are in sight in each table, next to its buttons',
    async (_name, size) => {
      ids ??= addRest();
      const ui = await open(size);
      for (const [placeOf, tables] of TABLES) await expectInSight(ui, placeOf(await ids), tables);
      await leave(ui);
      const operator = readFileSync(join(local.folder, '.presign', 'api-key'), 'utf8').trim();
      const ofOperator = await open(size, operator);
      await expectInSight(ofOperator, 'accounts', { Accounts: ['Created', 'Id'] });
      await leave(ofOperator);
    },
    300_000,
  );

  test('on a phone, the menu opens, leads to a page and closes, and rows become cards with labelled cells', async () => {
    const ui = await open(WIDTHS[0][1]);
    const { page } = ui;
    expect(await page.getByRole('navigation', { name: 'Screens' }).isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Menu' }).focus();
    await page.keyboard.press('Enter');
    const link = page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Requests' });
    await link.waitFor();
    await page.keyboard.press('Tab');
    expect(await texts(ui)).not.toContain('first key');
    expect(await page.getByRole('region', { name: 'Signed in' }).innerText()).toContain('first key');
    expect(await ui.violations()).toEqual([]);
    await page.setViewportSize(WIDTHS[0][1]);
    await link.click();
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    expect(await page.getByRole('navigation', { name: 'Screens' }).isVisible()).toBe(false);
    const first = page.locator('tbody tr').first();
    await first.waitFor();
    const content = `getComputedStyle(document.querySelector('tbody td[data-head="Cost"]'), '::before').content`;
    expect(await page.evaluate(content)).toBe('"Cost"');
    expect((await first.boundingBox())?.width).toBeLessThanOrEqual(390);
    await expectFits(ui);
    await leave(ui);
  });
});
