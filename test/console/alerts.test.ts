import { alerts } from '@presign/schema/alert-tables';
import { ledger } from '@presign/schema/ledger-tables';
import { sql } from 'drizzle-orm';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';

describe.skipIf(!hasChromium)('the Alerts page', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let slack: Upstream;
  let ui: ConsolePage;
  let account: string;

  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const answer = await fetch(`${stack.issuerUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    expect(answer.ok, await answer.clone().text()).toBe(true);
    return (await answer.json()) as T;
  };
  type Stored = { id: string; name: string; webhook: string | null; enabled: boolean; condition: object };
  const stored = async () => (await ask<{ data: Stored[] }>('GET', '/v1/alerts')).data;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    slack = await startUpstream((_seen, response) => void response.writeHead(200).end('ok'));
    account = await ownAccount(stack);
    await ask('POST', '/v1/budgets', {
      ...{ name: 'Team', scope: { account: true }, cost_limit: 25_000_000, window: 'month' },
    });
    await ask('POST', '/v1/budgets', { name: 'Each user', scope: { external_user: '*' }, cost_limit: 5 });
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
    await slack?.close();
  });

  const main = () => ui.page.getByRole('main');
  const dialog = () => ui.page.getByRole('dialog').filter({ visible: true });
  const press = (name: string | RegExp, exact = true) =>
    main().getByRole('button', { name, exact }).first().click();
  const submit = async (name: string) => {
    await dialog().getByRole('button', { name, exact: true }).click();
    await eventually(async () => (await dialog().count()) === 0);
    await settled(ui.page);
  };
  const rowOf = (name: string) => ui.page.getByRole('row', { name: new RegExp(`^${name}`) });
  const goTo = async (name: string) => {
    await rowOf(name).getByRole('link', { name, exact: true }).click();
    await ui.page.getByRole('heading', { level: 1, name }).waitFor();
    await settled(ui.page);
  };
  const expectGood = async () => {
    expect(await ui.violations()).toEqual([]);
    expect(ui.problems).toEqual([]);
  };

  test('suggests three alerts when there are none, and one of them is created unchanged', async () => {
    await ui.open('Alerts');
    await main().getByText('Three to begin with').waitFor();
    expect(await main().getByRole('listitem').count()).toBe(3);
    await expectGood();
    await press('Create Daily spend');
    expect(await dialog().getByLabel('Amount in dollars').inputValue()).toBe('50');
    await submit('Create');
    await rowOf('Daily spend').waitFor();
    expect(await rowOf('Daily spend').innerText()).toContain('Spend of a day reaches $50.00');
    const [{ condition, webhook } = {}] = await stored();
    expect([condition, webhook]).toMatchObject([{ spend: { window: 'day', amount: 50_000_000 } }, null]);
  });

  test('connects a Slack channel, never shows its address again, and watches a budget for it', async () => {
    const url = `${slack.url}/services/T0/B0/SECRET`;
    await press('Connect Slack');
    await dialog().getByLabel('URL of an incoming webhook').fill(url);
    await dialog().getByLabel('Description').fill('#ops');
    await submit('Connect');
    await press('Create an alert');
    await dialog().getByLabel('Name').fill('Team budget');
    await dialog().getByLabel('Fires when').selectOption('budget');
    const budget = dialog().getByLabel('Budget', { exact: true });
    await budget.waitFor();
    // A template has no figures.
    expect(await budget.locator('option').allInnerTexts()).toEqual(['Team']);
    await dialog()
      .getByLabel(/^Percent used/)
      .fill('90');
    await dialog().getByLabel('Sent to').selectOption({ label: '#ops' });
    await submit('Create');
    await rowOf('Team budget').waitFor();
    const text = await rowOf('Team budget').innerText();
    for (const part of ['90 % of Team is used', '#ops']) expect(text).toContain(part);
    await goTo('Team budget');
    await press('Send a test Team budget');
    await submit('Send');
    await eventually(async () => slack.seen.some(({ url: path }) => path.endsWith('/SECRET')));
    await ui.open('Webhooks');
    await ui.page.getByText('#ops').waitFor();
    expect(await main().innerText()).not.toContain('SECRET');
    await ui.open('Alerts');
  });

  test('creates a third alert for errors, and shows the start, the figure and the history of a firing', async () => {
    /** A table that is drawn again has no row for a moment. */
    const textOf = (name: string) =>
      rowOf(name)
        .innerText({ timeout: 5_000 })
        .catch(() => '');
    await press('Create an alert');
    await dialog().getByLabel('Name').fill('Provider fails');
    await dialog().getByLabel('Fires when').selectOption('errors');
    await dialog()
      .getByLabel(/^With at least so many calls/)
      .fill('50');
    await submit('Create');
    const of = { account, apiKey: stack.apiKey, issuerUrl: stack.issuerUrl };
    const [startedAt, settledAt] = [new Date(), new Date()];
    await stack.db.insert(ledger).values(row(of, { costMicrousd: 61_200_000, startedAt, settledAt }));
    await stack.db.update(alerts).set({ dueAt: sql`now()` });
    await eventually(async () => (await textOf('Daily spend')).includes('firing'));
    const text = await rowOf('Daily spend').innerText();
    for (const part of ['$61.20', '$50.00', 'since']) expect(text).toContain(part);
    await eventually(async () => ((await main().getByText('quiet').count()) === 2 ? true : undefined));
    await expectGood();
    await ui.page.setViewportSize({ width: 1_000, height: 700 });
    const [state, buttons] = await Promise.all(
      ['State', 'Change'].map((head) =>
        rowOf('Daily spend').locator(`td[data-head="${head}"]`).boundingBox(),
      ),
    );
    expect((state?.x ?? 0) + (state?.width ?? 0)).toBeLessThanOrEqual(buttons?.x ?? 0);
    await ui.page.setViewportSize({ width: 1_280, height: 800 });
    await ui.picture('alerts');
    await goTo('Daily spend');
    const firings = ui.page.getByRole('region', { name: 'Firings' });
    await firings.waitFor();
    expect(await firings.innerText()).toContain('$61.20');
    await ui.picture('alert');
    await expectGood();
  }, 300_000);

  test('watches a jump in spending, and its form shows the saved values again', async () => {
    await ui.open('Alerts');
    await press('Create an alert');
    await dialog().getByLabel('Name').fill('Jump');
    await dialog().getByLabel('Fires when').selectOption('spend_jump');
    await dialog().getByLabel('Spend of').selectOption('hour');
    const fields = [
      [dialog().getByLabel(/^Times the mean of 7 days/), '4.5'],
      [dialog().getByLabel('At least, in dollars'), '2.50'],
    ] as const;
    for (const [field, text] of fields) await field.fill(text);
    await submit('Create');
    await rowOf('Jump').waitFor();
    expect(await rowOf('Jump').innerText()).toContain(
      'Spend of an hour is 4.5 times the mean of 7 days, and at least $2.50',
    );
    const jump = (await stored()).find(({ name }) => name === 'Jump');
    expect(jump?.condition).toMatchObject({
      spend_jump: { window: 'hour', factor: 4.5, at_least: 2_500_000, time_zone: expect.stringMatching(/./) },
    });
    await press('Change Jump');
    expect(await dialog().getByLabel('Spend of').inputValue()).toBe('hour');
    for (const [field, text] of fields) expect(await field.inputValue()).toBe(text);
    await dialog().getByRole('button', { name: 'Cancel' }).click();
  });

  test('shows only alerts, budgets and endpoints of the own account', async () => {
    const other = await addAccount(stack);
    const own = await openConsole(browser, stack);
    await signIn(own, await addApiKey(stack, other.id, { scopes: ['admin'] }));
    await own.open('Alerts');
    const shown = own.page.getByRole('main');
    await shown.getByText('Three to begin with').waitFor();
    expect(await own.page.getByRole('table').count()).toBe(0);
    await shown.getByRole('button', { name: 'Create an alert' }).click();
    const form = own.page.getByRole('dialog').filter({ visible: true });
    await form.getByLabel('Fires when').selectOption('budget');
    await form.getByText('There is no budget yet.').waitFor();
    expect(await form.getByLabel('Sent to').locator('option').count()).toBe(1);
    // The address of an alert of the first account, which exists.
    const [{ id, name } = { id: '', name: '' }] = await stored();
    await own.page.goto(`${stack.consoleUrl}#/alerts/${id}`);
    await own.page.getByRole('alert').first().waitFor();
    for (const foreign of [name, '#ops', 'Team', '$61.20'])
      expect(await shown.innerText()).not.toContain(foreign);
    await own.page.context().close();
  });

  test('with the keyboard alone, an alert is found by the search, changed and muted', async () => {
    await ui.page.keyboard.press('Control+k');
    await ui.page.keyboard.type('Alerts');
    await ui.page.keyboard.press('Enter');
    await ui.page.getByRole('heading', { level: 1, name: 'Alerts' }).waitFor();
    await settled(ui.page);
    await main().getByRole('button', { name: 'Change Provider fails' }).focus();
    await ui.page.keyboard.press('Enter');
    await dialog().getByLabel('Name').focus();
    await ui.page.keyboard.press('Control+a');
    await ui.page.keyboard.type('Errors');
    await ui.page.keyboard.press('Enter');
    await rowOf('Errors').waitFor();
    await main().getByRole('button', { name: 'Mute Errors' }).focus();
    await ui.page.keyboard.press('Enter');
    await dialog().getByRole('button', { name: 'Mute', exact: true }).focus();
    await ui.page.keyboard.press('Enter');
    await rowOf('Errors').getByText('muted').waitFor();
    const errors = (await stored()).find(({ name }) => name === 'Errors');
    expect(errors).toMatchObject({
      enabled: false,
      condition: { errors: { percent: 10, calls: 50, minutes: 15 } },
    });
  });

  test('shows a refusal of the API in the form, which keeps the input', async () => {
    await press('Create an alert');
    await dialog().getByLabel('Name').fill('Wrong');
    await dialog().getByLabel('Amount in dollars').fill('many');
    await dialog().getByRole('button', { name: 'Create', exact: true }).click();
    await dialog().getByText('Amount: expected dollars').waitFor();
    expect(await dialog().getByLabel('Name').inputValue()).toBe('Wrong');
    await dialog().getByRole('button', { name: 'Cancel' }).click();
  });

  test('saves a change that is submitted in the frame in which its dialog opens', async () => {
    await ui.page.evaluate(`(async () => {
      const buttons = [...document.querySelectorAll('main button')];
      buttons.find(({ textContent }) => textContent === 'Unmute Errors').click();
      const submit = () => document.querySelector('dialog[open] [type=submit]');
      for (let drawn = 0; drawn < 100 && !submit(); drawn += 1) await null;
      submit().click();
    })()`);
    await eventually(async () =>
      (await stored()).some(({ name, enabled }) => name === 'Errors' && enabled) ? true : undefined,
    );
    await eventually(async () => (await dialog().count()) === 0);
  });

  test('deletes an alert, and is not offered to a key without the scope admin', async () => {
    await goTo('Errors');
    await press('Delete Errors');
    await submit('Delete');
    await ui.page.getByRole('heading', { level: 1, name: 'Alerts' }).waitFor();
    await eventually(async () => ((await rowOf('Errors').count()) === 0 ? true : undefined));
    const apiKey = await addApiKey(stack, account, { scopes: ['read', 'presign'] });
    const reader = await openConsole(browser, stack);
    await signIn(reader, apiKey);
    expect(await reader.page.getByRole('link', { name: 'Alerts' }).count()).toBe(0);
    expect(ui.problems).toEqual([]);
  });
});
