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

const WIDTHS = [
  ['a phone', { width: 390, height: 844 }],
  ['a laptop', { width: 1280, height: 800 }],
  ['a desktop', { width: 1440, height: 900 }],
] as const;

describe.skipIf(!hasChromium)('with the sample of `pnpm start`', () => {
  let local: Local;
  let browser: Browser;
  let api: Presign;
  let key: string;
  let url: string;

  beforeAll(async () => {
    await buildConsole();
    local = await startLocalForDocs();
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

  const open = async (viewport: { width: number; height: number }): Promise<ConsolePage> => {
    const stack = { issuerUrl: url, consoleUrl: `${url}/console/` };
    const ui = await openConsole(browser, stack, { viewport });
    await signIn(ui, key);
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
